//! How long a lock is held, and how its end is told.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use crosslock::{Error, LockGuard, Locker, LostReason};

use crate::{PATIENCE, Place};
use support::Stopwatch;

/// By how much servers' clocks may differ where one takes another's place: a lease is valid for as much less.
const CLOCK_SKEW: Duration = Duration::from_millis(10);

/// A locker whose leases end after `ttl`.
fn without_renewal(place: &Place, ttl: Duration) -> Locker {
    place.builder().ttl(ttl).renew(false).build().unwrap()
}

#[track_caller]
fn assert_lost(guard: &LockGuard) {
    assert!(!guard.is_held());
    assert_eq!(guard.remaining(), Duration::ZERO);
    assert!(matches!(guard.check(), Err(Error::Lost { .. })));
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
}

pub(crate) fn fresh_guard_is_held_and_verified(lock: &Locker) {
    let guard = lock.lock("a").unwrap();
    assert!(guard.is_held());
    assert!(guard.remaining() > Duration::ZERO);
    guard.check().unwrap();
    guard.verify().unwrap();
    assert!(guard.lost().is_empty());
}

pub(crate) fn renewal_keeps_a_lock_for_several_ttls(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(300));
    let lock = place.builder().ttl(ttl).build().unwrap();
    assert_renewed(place, || lock.lock("a").unwrap(), ttl);
}

/// Asserts that a guard of "a" is held for several ttls, and then released.
#[track_caller]
pub(crate) fn assert_renewed(place: &Place, begin: impl FnOnce() -> LockGuard, ttl: Duration) {
    let watch = Stopwatch::start();
    let guard = begin();
    let end = Instant::now() + place.several(ttl);
    while Instant::now() < end && guard.is_held() {
        let other = place.try_lock("a").unwrap();
        assert!(other.is_none() || !guard.is_held(), "another got in");
        thread::sleep(ttl / 20);
    }
    if let Err(error) = guard.verify() {
        // Its renewals may have been too late.
        return watch.assert_late(ttl / 2, ttl, error);
    }
    assert!(guard.lost().is_empty() && guard.wait_lost(Duration::ZERO).is_none());
    guard.unlock().unwrap();
    assert!(!place.lock("a").unwrap().was_abandoned());
}

pub(crate) fn lease_that_is_not_renewed_is_lost(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(150));
    let lock = without_renewal(place, ttl);
    let watch = Stopwatch::start();
    let guard = lock.lock("a").unwrap();
    assert!(guard.remaining() <= ttl);
    let waited = guard.wait_lost(PATIENCE).expect("it is lost");
    let elapsed = watch.assert_within(ttl);
    let lost = guard.lost().try_recv().expect("its message is there");
    assert_eq!((&waited.name, waited.reason), (&lost.name, lost.reason));
    assert!(guard.wait_lost(Duration::ZERO).is_some());
    assert_eq!(
        (lost.name.as_str(), lost.reason),
        ("a", LostReason::Expired)
    );
    assert!(
        elapsed >= place.least(ttl) - CLOCK_SKEW,
        "lost too early, after {elapsed:?}"
    );
    assert_lost(&guard);
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
}

pub(crate) fn lost_lease_can_be_taken_by_another_who_keeps_it(place: &Place) {
    let lock = without_renewal(place, place.ttl(Duration::from_millis(100)));
    let guard = lock.lock("a").unwrap();
    let next = place.try_lock_for("a", PATIENCE).unwrap();
    let next = next.expect("the lease ran out");
    assert_lost(&guard);
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    next.verify().unwrap();
    assert!(lock.try_lock("a").unwrap().is_none());

    // A late drop takes nothing from the next holder, either.
    let late = lock.lock("b").unwrap();
    let next = place.try_lock_for("b", PATIENCE).unwrap();
    let next = next.expect("the lease ran out");
    drop(late);
    next.verify().unwrap();
}

pub(crate) fn every_clone_of_the_channel_learns_of_the_loss(place: &Place) {
    let lock = without_renewal(place, place.ttl(Duration::from_millis(100)));
    let guard = lock.lock("a").unwrap();
    let mut messages = 0;
    for channel in [guard.lost().clone(), guard.lost().clone()] {
        match channel.recv_timeout(PATIENCE) {
            Ok(lost) => messages += usize::from(lost.name == "a"),
            Err(end) => assert_eq!(end, RecvTimeoutError::Disconnected),
        }
    }
    assert_eq!(messages, 1);
}

pub(crate) fn max_hold_ends_renewal(place: &Place) {
    const MAX_HOLD: Duration = Duration::from_millis(500);
    let ttl = place.ttl(Duration::from_millis(300));
    let lock = place.builder().ttl(ttl).max_hold(MAX_HOLD).build().unwrap();
    let watch = Stopwatch::start();
    let guard = lock.lock("a").unwrap();
    guard.lost().recv_timeout(PATIENCE).unwrap();
    let elapsed = watch.assert_within(MAX_HOLD + ttl);
    assert!(elapsed >= MAX_HOLD, "lost too early, after {elapsed:?}");
    assert_lost(&guard);
    let next = place.try_lock_for("a", PATIENCE).unwrap();
    assert!(next.expect("the lease ran out").was_abandoned());
}

pub(crate) fn forgotten_guard_ends_with_its_ttl_and_is_told_to_the_next_holder_once(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(150));
    let holder = without_renewal(place, ttl);
    let watch = Stopwatch::start();
    let guard = holder.lock("a").unwrap();
    assert!(!guard.was_abandoned());
    std::mem::forget(guard);

    let next = place.lock("a").unwrap();
    let elapsed = watch.assert_within(place.most(ttl));
    assert!(next.was_abandoned());
    assert!(
        elapsed >= place.least(ttl) - CLOCK_SKEW,
        "taken too early, after {elapsed:?}"
    );
    next.unlock().unwrap();
    assert!(!place.lock("a").unwrap().was_abandoned());
}

pub(crate) fn clean_release_is_no_abandonment(lock: &Locker) {
    assert!(!lock.lock("a").unwrap().was_abandoned());
    lock.lock("a").unwrap().unlock().unwrap();
    assert!(!lock.lock("a").unwrap().was_abandoned());
}
