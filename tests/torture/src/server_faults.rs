//! Faults of the servers: they stop, start again, refuse, forget, or another takes their place.

use std::thread;
use std::time::Duration;

use redis::{Connection, RedisError, cmd};

use super::driver::Driver;
use super::faults::{PATIENCE, at_once, millis};
use super::kinds::{Kind, Moves, STALE};
use super::names::{NAMES, key_of};
use super::servers::Directory;
use super::watcher::admin;
use super::{failovers, member_faults};
use support::{RedisServer, eventually};

/// Hits the server that has this lock, or all that have locks.
pub(crate) fn on_server(driver: &mut Driver<'_>, kind: &Kind, name: &str) -> bool {
    let fault = kind.name;
    let short = u64::try_from(driver.ttl.as_millis()).expect("short") * 8 / 10;
    let time = millis(driver.rng.u64(20..short));
    if driver.servers.members().is_some() {
        return member_faults::fire(driver, fault);
    }
    if let Some(directory) = driver.servers.directory() {
        return fill(directory, time);
    }
    match fault {
        _ if kind.moves != Moves::None || fault == STALE => failovers::fire(driver, fault, name),
        "stop server" => {
            let server = driver.servers.master_of(name);
            server.stop();
            thread::sleep(time);
            server.cont();
            true
        }
        "restart server with aof" | "restart server without aof" => {
            driver.servers.master_of(name).restart();
            driver.servers.mend();
            true
        }
        _ => on_all(driver, fault, time),
    }
}

/// Nothing can be written that needs more room than there is.
fn fill(directory: &Directory, time: Duration) -> bool {
    let full = directory.fill();
    thread::sleep(time);
    if let Err(error) = &full {
        eprintln!("torture: disk full: {error}");
    }
    full.is_ok()
}

/// Hits all servers that have locks, at once. Says whether one was hit.
fn on_all(driver: &Driver<'_>, fault: &str, time: Duration) -> bool {
    let servers = &driver.servers;
    let keys_at = |server: &RedisServer| {
        let names = NAMES.into_iter();
        let here = names.filter(|name| servers.master_of(name).addr() == server.addr());
        here.map(key_of).collect::<Vec<_>>()
    };
    let hit = |server: &RedisServer| {
        let open = || admin(server.addr());
        let done = open().and_then(|mut admin| match fault {
            "busy script" => keep_busy(&mut admin, &mut open()?, time),
            "delete lock" => delete(&mut admin, keys_at(server)),
            "delete counter" => {
                let counters = keys_at(server).into_iter().map(|key| key + ":fence");
                delete(&mut admin, counters.collect())
            }
            _ => command(&mut admin, fault, time),
        });
        if let Err(error) = &done {
            eprintln!("torture: {fault}: {error}");
        }
        done.is_ok()
    };
    at_once(servers.masters(), hit)
}

/// One after the other: in a cluster they are in different slots.
fn delete(admin: &mut Connection, keys: Vec<String>) -> Result<(), RedisError> {
    keys.iter()
        .try_for_each(|key| cmd("DEL").arg(key).exec(admin))
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
