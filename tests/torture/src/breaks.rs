//! An operator, who breaks locks through the library.

use std::thread;
use std::time::Duration;

use crosslock::{Locker, Result};
use fastrand::Rng;

use super::driver::Driver;
use super::faults::at_once;
use super::history::{Event, History, now};
use super::register::Target;

/// One or several break it, each by a locker of its own. Says whether anybody had it.
pub(crate) fn break_lock(driver: &mut Driver<'_>, name: &str) -> bool {
    const APART: u64 = 10_000;
    let (url, servers) = (driver.servers.url(), driver.servers.topology());
    let of = (url.as_str(), driver.ttl, servers.io_timeout());
    let pauses: Vec<_> = (0..driver.rng.u32(1..=3))
        .map(|number| Duration::from_micros(driver.rng.u64(0..APART) * u64::from(number)))
        .collect();
    let (history, id) = (&driver.history, driver.faults);
    at_once(pauses, |pause| {
        thread::sleep(pause);
        break_and_tell(history, id, of, name)
    })
}

/// Stops the holder, breaks its lock, and lets it go on.
pub(crate) fn stop_and_break(driver: &mut Driver<'_>, target: &Target) -> bool {
    let ttl = driver.ttl;
    let part = |rng: &mut Rng| ttl.mul_f64(0.8 * rng.f64());
    driver.worker(target.process).stop();
    thread::sleep(part(&mut driver.rng));
    let broke = break_lock(driver, &target.name);
    thread::sleep(part(&mut driver.rng));
    driver.worker(target.process).cont();
    broke
}

/// Writes down what a break ended. When that isn't known, it may be any lease.
fn break_and_tell(history: &History, id: u64, of: Of<'_>, name: &str) -> bool {
    let (from, broken) = match open(of) {
        Ok(locker) => (now(), locker.break_lock(name)),
        Err(error) => (now(), Err(error)),
    };
    let ended = |pid, token| {
        history.tell(&Event {
            id,
            pid,
            name: name.to_owned(),
            token,
            until: from,
            ..Event::now("broke")
        });
    };
    match broken {
        Ok(holders) => {
            for holder in &holders {
                let pid = holder.party.as_ref().map_or(0, |party| party.pid);
                ended(pid, holder.token.unwrap_or_default());
            }
            !holders.is_empty()
        }
        Err(error) => {
            eprintln!("torture: break: {error}");
            ended(0, 0);
            false
        }
    }
}

/// What an operator opens, the ttl of a run, and for how long an answer is waited for.
type Of<'a> = (&'a str, Duration, Duration);

fn open((url, ttl, io_timeout): Of<'_>) -> Result<Locker> {
    Locker::builder(url)
        .ttl(ttl)
        .io_timeout(io_timeout)
        .label("operator")
        .build()
}
