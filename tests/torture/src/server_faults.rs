//! Faults of the servers: they stop, start again, refuse, forget, or another takes their place.

use std::io;
use std::thread;
use std::time::Duration;

use redis::{Connection, RedisError, cmd};

use super::driver::Driver;
use super::faults::{PATIENCE, millis};
use super::names::{NAMES, key_of};
use super::watcher::admin;
use support::{Fault, eventually};

pub(crate) fn on_server(driver: &mut Driver<'_>, name: &str) -> bool {
    let short = u64::try_from(driver.ttl.as_millis()).expect("short") * 8 / 10;
    let time = millis(driver.rng.u64(20..short));
    match name {
        "stop server" => {
            driver.servers.primary().stop();
            thread::sleep(time);
            driver.servers.primary().cont();
            return true;
        }
        "restart server with aof" | "restart server without aof" => {
            driver.servers.primary().restart();
            return true;
        }
        "fail over to a stale replica" => {
            fail_over(driver, time);
            return true;
        }
        "server clock forward" | "server clock back" => {
            return move_clock(driver, name, time).is_ok();
        }
        _ => {}
    }
    let open = || admin(driver.servers.address().get());
    let done = open().and_then(|mut admin| match name {
        "busy script" => keep_busy(&mut admin, &mut open()?, time),
        _ => command(&mut admin, name, time),
    });
    if let Err(error) = &done {
        eprintln!("torture: {name}: {error}");
    }
    done.is_ok()
}

fn command(admin: &mut Connection, name: &str, time: Duration) -> Result<(), RedisError> {
    let mut tell = |line: &str| tell(admin, line);
    match name {
        "script flush" => tell("SCRIPT FLUSH"),
        "client kill normal" => tell("CLIENT KILL TYPE normal SKIPME yes"),
        "client kill pubsub" => tell("CLIENT KILL TYPE pubsub"),
        "client pause" => {
            tell(&format!("CLIENT PAUSE {} ALL", time.as_millis()))?;
            thread::sleep(time);
            Ok(())
        }
        "maxmemory" => {
            tell("CONFIG SET maxmemory 1")?;
            thread::sleep(time);
            tell("CONFIG SET maxmemory 0")
        }
        "acl revoked" => {
            tell("ACL SETUSER app -eval -evalsha resetchannels")?;
            thread::sleep(time);
            tell("ACL SETUSER app +eval +evalsha &crosslock:inbox:*")
        }
        "flushall" => tell("FLUSHALL"),
        "delete lock" => tell(&format!("DEL {}", NAMES.map(key_of).join(" "))),
        "delete counter" => {
            let counters = NAMES.map(|name| key_of(name) + ":fence");
            tell(&format!("DEL {}", counters.join(" ")))
        }
        "evict" => {
            tell("CONFIG SET maxmemory-policy volatile-lru")?;
            tell("CONFIG SET maxmemory 1")?;
            thread::sleep(millis(5));
            tell("CONFIG SET maxmemory 0")?;
            tell("CONFIG SET maxmemory-policy noeviction")
        }
        name => unreachable!("{name} is no fault of the server"),
    }
}

/// Sends a command, whose words are apart by spaces.
fn tell(admin: &mut Connection, line: &str) -> Result<(), RedisError> {
    let mut words = line.split(' ');
    let mut command = cmd(words.next().unwrap_or_default());
    for word in words {
        command.arg(word);
    }
    command.exec(admin)
}

/// Runs a script without end, until it is killed.
fn keep_busy(
    admin: &mut Connection,
    other: &mut Connection,
    time: Duration,
) -> Result<(), RedisError> {
    thread::scope(|scope| {
        // It ends with an error, which is meant.
        scope.spawn(|| cmd("EVAL").arg("while true do end").arg(0).exec(other));
        thread::sleep(time.max(millis(40)));
        let mut killed = Ok(());
        eventually(PATIENCE, || {
            killed = cmd("SCRIPT").arg("KILL").exec(admin);
            killed.is_ok()
        });
        killed
    })
}

/// Has a replica that has heard nothing for `lag` take the server's place.
fn fail_over(driver: &mut Driver<'_>, lag: Duration) {
    driver.servers.part();
    thread::sleep(lag);
    driver.servers.swap();
    let address = driver.servers.address().get();
    for proxy in &driver.proxies {
        proxy.point_to(address);
        proxy.set(Fault::Refuse);
        proxy.set(Fault::None);
    }
    driver.servers.reunite();
}

/// Moves the server's clock, and takes it back or not; is over when it shows a later time than it ever did. So tokens
/// increase also when the counter is lost by the next fault.
fn move_clock(driver: &mut Driver<'_>, name: &str, time: Duration) -> io::Result<()> {
    const MARGIN: Duration = millis(20);
    let step = driver.ttl.mul_f64(0.3 + 2.7 * driver.rng.f64());
    let is_taken_back = driver.rng.bool();
    let Some(clock) = &mut driver.servers.clock else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    if name == "server clock forward" {
        clock.forward(step)?;
        thread::sleep(time);
        if is_taken_back {
            clock.back(step)?;
            thread::sleep(step + MARGIN);
        }
    } else {
        clock.back(step)?;
        thread::sleep(time);
        if is_taken_back {
            clock.forward(step)?;
        } else {
            thread::sleep(step.saturating_sub(time) + MARGIN);
        }
    }
    Ok(())
}
