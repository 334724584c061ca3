//! An operator, who breaks locks through the library.

use std::thread;
use std::time::Duration;

use crosslock::{Holder, Locker, Result};
use fastrand::Rng;

use super::driver::Driver;
use super::history::{Event, History, now};
use super::register::Target;
use super::worker;

/// One or several break it, each by a locker of its own. Says whether anybody had it.
pub(crate) fn break_lock(driver: &mut Driver<'_>, name: &str) -> bool {
    const APART: u64 = 10_000;
    let url = format!("redis://app:app@{}/", driver.servers.address().get());
    let pauses: Vec<_> = (0..driver.rng.u32(1..=3))
        .map(|number| Duration::from_micros(driver.rng.u64(0..APART) * u64::from(number)))
        .collect();
    let (history, id) = (&driver.history, driver.faults);
    let broke = |pause| {
        thread::sleep(pause);
        tell(history, (id, name), || break_once(&url, name))
    };
    let broke = &broke;
    thread::scope(|scope| {
        let threads: Vec<_> = pauses
            .into_iter()
            .map(|pause| scope.spawn(move || broke(pause)))
            .collect();
        // Each is waited for.
        let broke = threads
            .into_iter()
            .map(|one| one.join().expect("no panics"));
        broke.filter(|broke| *broke).count() > 0
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

fn break_once(url: &str, name: &str) -> Result<Vec<Holder>> {
    let locker = Locker::builder(url)
        .io_timeout(worker::IO_TIMEOUT)
        .label("operator")
        .build()?;
    locker.break_lock(name)
}

/// Writes down what a break ended. When that isn't known, it may be any lease.
fn tell(
    history: &History,
    (id, name): (u64, &str),
    break_once: impl FnOnce() -> Result<Vec<Holder>>,
) -> bool {
    let from = now();
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
    match break_once() {
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
