//! `min_replicas`: what comes of each call when too few replicas have what it wrote.

#![cfg(feature = "redis")]

mod denials;
mod values;

use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use support::{Replicated, shown, wait_until};

/// The lock of most tests, and where it is.
const NAME: &str = "n";
const LOCK: &str = "{crosslock:n}";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// All replicas stop: the master takes them for connected still.
fn stop_replicas(set: &Replicated) {
    set.members()[1..].iter().for_each(|member| member.stop());
}

#[track_caller]
fn held(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock_for(NAME, PATIENCE);
    guard.expect("try_lock_for").expect("it is free")
}

/// The call failed because too few replicas have what it wrote, and says so.
#[track_caller]
fn assert_too_few(error: &Error) {
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    let text = shown(error);
    assert!(
        text.contains("min_replicas is") && text.contains("may lose it"),
        "{text}"
    );
}

/// The lock is free at the master, and its counter tells that it was released.
#[track_caller]
fn assert_released(set: &Replicated, index: usize) {
    let master = set.member(index);
    wait_until("the release", PATIENCE, || master.get(LOCK).is_none());
    let counter = master.counter("{crosslock:n}:fence");
    assert!(
        counter.is_none_or(|counter| counter % 2 == 0),
        "{counter:?}"
    );
    let left: u64 = master.query(&["EXISTS", "{crosslock:n}:queue", "{crosslock:n}:waiters"]);
    assert_eq!(left, 0, "somebody is still in the queue");
}
