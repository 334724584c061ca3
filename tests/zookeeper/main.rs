//! Locks in ZooKeeper: what becomes of a session, and when it counts as lost. Where there is no ZooKeeper, tests with
//! its name in theirs are left out.

#![cfg(feature = "zookeeper")]

mod zookeeper_hosts;
mod zookeeper_proof;
#[cfg(feature = "tls")]
mod zookeeper_tls;

use std::time::Duration;

use crosslock::{LockGuard, Locker, LockerBuilder};
use support::{ZooKeeper, ZooKeeperSetup, shown, wait_until};

const NAME: &str = "n";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Long enough for sessions to live on a loaded machine.
const TICK: Duration = Duration::from_millis(200);
/// The longest session that servers give: 20 ticks.
const TTL: Duration = Duration::from_secs(4);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn setup() -> ZooKeeperSetup {
    ZooKeeper::setup().tick(TICK)
}

/// Calls of this locker outlast an election.
fn builder(url: &str) -> LockerBuilder {
    let builder = Locker::builder(url).ttl(TTL).outage_timeout(PATIENCE);
    builder.connect_timeout(PATIENCE)
}

#[track_caller]
fn open(url: &str) -> Locker {
    builder(url).build().expect("open")
}

#[track_caller]
fn held(locker: &Locker) -> LockGuard {
    held_in(locker, NAME)
}

#[track_caller]
fn held_in(locker: &Locker, name: &str) -> LockGuard {
    let guard = locker.try_lock_for(name, PATIENCE).expect("try_lock_for");
    guard.expect("it becomes free")
}

#[track_caller]
fn assert_works(locker: &Locker) {
    let guard = held(locker);
    guard.verify().expect("verify");
}
