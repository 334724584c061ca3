//! Locks that stay taken for a while although they were released.

use std::time::{Duration, Instant};

use crosslock::Locker;

use super::kinds::all_kinds_at_once;
use super::release::{assert_free, assert_taken, panics_with};
use crate::{PATIENCE, Place};

/// Nothing here takes as long.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(300);

/// Also where it is dropped, and its locker has gone.
pub(crate) fn whatever_is_released_early_stays_taken_until_its_time(place: &Place) {
    all_kinds_at_once(place, |kind| {
        for by_drop in [false, true] {
            let (began, lock) = (Instant::now(), place.other());
            let guard = (kind.take)(&lock, kind.name).unwrap();
            guard.at_least_for(SHORT);
            let token = guard.fencing_token();
            if by_drop {
                drop((guard, lock));
            } else {
                guard.unlock().unwrap();
            }
            for name in kind.names() {
                let early = place.try_lock(&name).unwrap();
                assert!(early.is_none() || began.elapsed() >= SHORT, "{name}");
            }
            let next = place.lock(kind.name).unwrap();
            assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
            assert!(next.fencing_token() > token && !next.was_abandoned());
            drop(next);
            // Servers of their own may end it a bit later for one of several.
            for name in kind.names() {
                assert!(place.try_lock_for(&name, PATIENCE).unwrap().is_some());
            }
        }
    });
}

pub(crate) fn last_call_counts(lock: &Locker) {
    let guard = lock.lock("a").unwrap();
    guard.at_least_for(LONG);
    guard.at_least_for(Duration::ZERO);
    guard.unlock().unwrap();
    assert_free(lock, "a");

    let guard = lock.lock("a").unwrap();
    guard.at_least_for(Duration::ZERO);
    guard.at_least_for(Duration::MAX);
    guard.unlock().unwrap();
    assert_taken(lock, "a");
}

pub(crate) fn panic_frees_it_at_once(lock: &Locker) {
    panics_with(|| {
        let guard = lock.lock("a").unwrap();
        guard.at_least_for(LONG);
        guard
    });
    let next = lock.try_lock("a").unwrap().expect("it was released");
    assert!(next.was_abandoned());
}

pub(crate) fn reader_keeps_out_writers_and_no_readers(place: &Place) {
    let guard = place.read("a").unwrap();
    guard.at_least_for(LONG);
    guard.unlock().unwrap();
    for _ in 0..2 {
        assert!(place.try_read("a").unwrap().is_some());
        assert!(place.try_write("a").unwrap().is_none());
    }
    let semaphore = place.semaphore("a", 3).unwrap();
    assert_eq!(semaphore.available_permits().unwrap(), 0);
}

pub(crate) fn permits_limit_a_rate(place: &Place) {
    const PERMITS: u32 = 3;
    let semaphore = place.semaphore("a", PERMITS).unwrap();
    let began = Instant::now();
    for taken in 0..3 * PERMITS {
        let guard = semaphore.acquire().unwrap();
        guard.at_least_for(SHORT);
        let least = SHORT * (taken / PERMITS);
        assert!(began.elapsed() >= least, "{taken} at {:?}", began.elapsed());
        guard.unlock().unwrap();
    }
}
