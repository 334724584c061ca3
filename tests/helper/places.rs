//! Orders that are about a place: its files, its host, its values, and who inherits what is there.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use crosslock::{Error, LockGuard, Locker, Result};
use fork::Fork;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::time::{ClockId, clock_gettime};

use super::orders::{Holder, outcome};
use super::*;

pub(crate) fn obey(holder: &Holder, verb: &str, name: &str) -> String {
    let lock = holder.lock();
    match verb {
        "keep" => outcome(keep_taken(lock, name, Duration::from_secs(7200))),
        "keep-a-second" => outcome(keep_taken(lock, name, Duration::from_secs(1))),
        "look" => format!("{} holders", lock.inspect(name).unwrap().holders.len()),
        "why" => lock.try_lock(name).unwrap_err().to_string(),
        "up" => clock_gettime(ClockId::Boottime).tv_sec.to_string(),
        "execute" => start_sleeping(&[]),
        #[cfg(feature = "file")]
        "execute-with-lock" => start_sleeping(&holder.guard("").lock_files().unwrap()),
        "fork" => fork_sleeping(),
        _ => obey_with_value(lock, verb, name),
    }
}

#[cfg(not(feature = "value"))]
fn obey_with_value(_: &Locker, verb: &str, _: &str) -> String {
    panic!("{verb:?}")
}

#[cfg(feature = "value")]
fn obey_with_value(lock: &Locker, verb: &str, name: &str) -> String {
    let value = lock.mutex(name, String::new());
    match verb {
        "store-10" => outcome(value.and_then(|value| value.set("x".repeat(10)))),
        "store-10000" => outcome(value.and_then(|value| value.set("x".repeat(10_000)))),
        "length" => value.unwrap().peek().unwrap().len().to_string(),
        _ => panic!("{verb:?}"),
    }
}

/// The guard in a forked child holds nothing, and isn't told of a loss: the lock is the parent's.
pub(crate) fn copy(guard: &LockGuard) -> String {
    assert!(!guard.is_held());
    assert!(guard.lost().is_empty());
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(guard.check(), Err(Error::Lost { .. })));
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    "ok".to_owned()
}

fn keep_taken(lock: &Locker, name: &str, least: Duration) -> Result<()> {
    let guard = lock.lock(name)?;
    guard.at_least_for(least);
    guard.unlock()
}

fn start_sleeping(files: &[File]) -> String {
    for file in files {
        fcntl_setfd(file.as_fd(), FdFlags::empty()).unwrap();
    }
    let child = Command::new("sleep")
        .arg(PATIENCE.as_secs().to_string())
        .spawn();
    child.unwrap().id().to_string()
}

/// Forks a child that never uses what it has got.
fn fork_sleeping() -> String {
    match fork::fork().unwrap() {
        Fork::Parent(pid) => pid.to_string(),
        Fork::Child => {
            std::thread::sleep(PATIENCE);
            std::process::exit(0);
        }
    }
}
