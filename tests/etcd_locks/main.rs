//! What stands in etcd for a lock: its keys and leases, who else uses them, and what it costs. Where there is no etcd,
//! tests with its name in theirs are left out.

#![cfg(feature = "etcd")]

mod etcd_far;
mod etcd_keys;
mod etcd_late;
mod etcd_operators;
mod etcd_restored;

use std::time::Duration;

use crosslock::{LockGuard, Locker, LockerBuilder};
use support::{Etcd, wait_until};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The shortest that there is.
const TTL: Duration = Duration::from_secs(2);

/// Long enough that nothing here ends by it.
const LONG: Duration = Duration::from_secs(600);

/// The line of the lock `n`.
const LINE: &str = "crosslock/n/w/";

fn open(server: &Etcd) -> Locker {
    with(server, |builder| builder)
}

fn with(server: &Etcd, options: impl FnOnce(LockerBuilder) -> LockerBuilder) -> Locker {
    let builder = Locker::builder(&server.url());
    options(builder).build().expect("it opens")
}

#[track_caller]
fn take(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock("n").expect("it answers");
    guard.expect("it is free")
}

/// Bounded, so that a test fails that waits in vain.
#[track_caller]
fn wait_for(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock_for("n", PATIENCE).expect("it answers");
    guard.expect("it becomes free")
}

#[track_caller]
fn await_places(server: &Etcd, count: usize) -> Vec<String> {
    wait_until("places in line", PATIENCE, || {
        server.keys(LINE).len() == count
    });
    server.keys(LINE)
}
