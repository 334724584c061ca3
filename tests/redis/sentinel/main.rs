//! Locks at the master that sentinels name: what a failover, sentinels that fail and partitions do to them.

#![cfg(feature = "redis")]

mod liar;
mod opening;
mod sentinels;
#[cfg(feature = "tls")]
mod tls;

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker, LockerBuilder};
use support::{SentinelSet, Setup, shown};

const NAME: &str = "n";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_secs(2);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Calls of this locker outlast a failover.
fn builder(url: &str) -> LockerBuilder {
    Locker::builder(url).ttl(TTL).outage_timeout(PATIENCE)
}

fn open(set: &SentinelSet) -> Locker {
    builder(&set.url()).build().expect("open")
}

#[track_caller]
fn held(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock_for(NAME, PATIENCE).expect("try_lock_for");
    guard.expect("it becomes free")
}

#[track_caller]
fn assert_works(locker: &Locker) {
    let guard = held(locker);
    guard.verify().expect("verify");
    guard.unlock().expect("unlock");
}

/// A guard and its token, taken in a thread that begins to wait now.
fn waiting(locker: &Locker) -> thread::JoinHandle<(LockGuard, Instant)> {
    let locker = locker.clone();
    thread::spawn(move || {
        let guard = held(&locker);
        (guard, Instant::now())
    })
}
