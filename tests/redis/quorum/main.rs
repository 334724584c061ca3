//! Locks that a majority of real servers grants: opening them, servers that fail or forget, and clients that lock with
//! SET.

mod cut_off;
mod defects;
mod failures;
mod opening;
mod plain;

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker, LockerBuilder};
use support::{Quorum, RedisServer, Setup, Stopwatch, assert_like, eventually, shown, wait_until};

const NAME: &str = "n";
const LOCK: &str = "{crosslock:n}";
const QUEUE: &str = "{crosslock:n}:queue";
const COUNTER: &str = "{crosslock:n}:fence";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_secs(1);

fn builder(url: &str) -> LockerBuilder {
    Locker::builder(url).ttl(TTL).outage_timeout(PATIENCE)
}

fn open(url: &str) -> Locker {
    builder(url).build().expect("open")
}

#[track_caller]
fn held(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock_for(NAME, PATIENCE).expect("try_lock_for");
    guard.expect("it becomes free")
}

/// Takes the lock, releases it, and gives its token.
#[track_caller]
fn pass(locker: &Locker) -> u64 {
    let guard = held(locker);
    let token = guard.fencing_token();
    guard.unlock().expect("unlock");
    token
}
