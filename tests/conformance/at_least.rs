//! Locks that stay taken for a while although they were released.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker};

use super::kinds::all_kinds_at_once;
use super::release::{assert_free, assert_taken, panics_with};
use crate::{PATIENCE, Place};

/// Nothing here takes as long.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(300);

/// Releases at once what stays taken for so long, and gives a moment before that began.
fn released_early(lock: &Locker, name: &str, least: Duration) -> (Instant, u64) {
    let before = Instant::now();
    let guard = lock.lock(name).unwrap();
    guard.at_least_for(least);
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    (before, token)
}

/// Also where it is dropped, and its locker has gone.
pub(crate) fn whatever_is_released_early_stays_taken_until_its_time(place: &Place) {
    all_kinds_at_once(|kind| {
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

pub(crate) fn each_call_finds_it_taken(place: &Place) {
    let other = place.builder().attempts(3).build().unwrap();
    released_early(place, "a", LONG);
    for lock in [&**place, &other] {
        assert_taken(lock, "a");
        assert!(lock.try_lock_for("a", SHORT / 3).unwrap().is_none());
        assert_free(lock, "b");
    }
    let busy = other.lock("a");
    assert!(matches!(busy, Err(crosslock::Error::Busy { .. })));
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

pub(crate) fn longer_hold_changes_nothing(place: &Place) {
    let least = Duration::from_millis(20);
    let guard = place.lock("a").unwrap();
    guard.at_least_for(least);
    thread::sleep(2 * least);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_free(place, "a");
}

pub(crate) fn time_begins_with_each_guard_anew(place: &Place) {
    let lock = place.builder().hand_over(PATIENCE).build().unwrap();
    let guard = lock.lock("a").unwrap();
    guard.at_least_for(Duration::from_nanos(1));
    let released = thread::scope(|scope| {
        scope.spawn(|| {
            let guard = lock.lock("a").unwrap();
            guard.at_least_for(SHORT);
            guard.unlock().unwrap();
        });
        // Long enough to get into the queue.
        thread::sleep(SHORT / 3);
        let released = Instant::now();
        guard.unlock().unwrap();
        released
    });
    drop(place.lock("a").unwrap());
    assert!(released.elapsed() >= SHORT, "{:?}", released.elapsed());
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

/// Those that wait when it is released, and those that come after, of this locker and of others.
pub(crate) fn waiters_get_it_when_its_time_is_over(place: &Place) {
    let lock = place.builder().hand_over(PATIENCE).build().unwrap();
    let other = place.other();
    let began = Instant::now();
    let guard = lock.lock("a").unwrap();
    guard.at_least_for(SHORT);
    let wait = |lock: &Locker| {
        let guard = lock.lock("a").unwrap();
        (
            began.elapsed(),
            guard.was_abandoned(),
            guard.fencing_token(),
        )
    };
    let mut served = thread::scope(|scope| {
        let before = [&lock, &lock, &other].map(|lock| scope.spawn(move || wait(lock)));
        thread::sleep(SHORT / 6);
        guard.unlock().unwrap();
        let after = [&lock, &other].map(|lock| scope.spawn(move || wait(lock)));
        let all = before.into_iter().chain(after);
        all.map(|waiter| waiter.join().unwrap()).collect::<Vec<_>>()
    });
    served.sort_by_key(|(_, _, token)| *token);
    for (after, abandoned, _) in &served {
        assert!(*after >= SHORT, "after {after:?}");
        assert!(!abandoned);
    }
    served.dedup_by_key(|(_, _, token)| *token);
    assert_eq!(served.len(), 5);
    assert_free(place, "a");
}

pub(crate) fn waiter_that_gives_up_leaves_it_taken(place: &Place) {
    let other = place.other();
    let (began, _) = released_early(place, "a", SHORT);
    let given_up = other.try_lock_for("a", SHORT / 6).unwrap().is_none();
    assert!(given_up || began.elapsed() >= SHORT);
    drop(other.lock("a").unwrap());
    assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
}

pub(crate) fn lost_guard_keeps_nothing(place: &Place) {
    let guard = place.careless().lock("a").unwrap();
    guard.at_least_for(LONG);
    let next = place.try_lock_for("a", PATIENCE).unwrap().unwrap();
    assert!(guard.unlock().is_err());
    next.unlock().unwrap();
    assert_free(place, "a");
}

/// The release of one that reads.
fn reads_early(lock: &Locker, least: Duration) -> Instant {
    let began = Instant::now();
    let guard = lock.read("a").unwrap();
    guard.at_least_for(least);
    guard.unlock().unwrap();
    began
}

pub(crate) fn reader_keeps_out_writers_and_no_readers(place: &Place) {
    reads_early(place, LONG);
    for _ in 0..2 {
        let guard = place.try_read("a").unwrap().expect("readers may");
        assert!(place.try_write("a").unwrap().is_none());
        guard.unlock().unwrap();
    }
    assert!(place.try_write("a").unwrap().is_none());
    assert_eq!(
        place
            .semaphore("a", 3)
            .unwrap()
            .available_permits()
            .unwrap(),
        0
    );
}

pub(crate) fn downgraded_guard_keeps_its_time(place: &Place) {
    let guard = place.write("a").unwrap();
    guard.at_least_for(LONG);
    let reading = guard.downgrade().unwrap();
    assert!(place.try_read("a").unwrap().is_some());
    reading.unlock().unwrap();
    assert!(place.try_write("a").unwrap().is_none());
    assert!(place.try_read("a").unwrap().is_some());
}

pub(crate) fn permits_limit_a_rate(place: &Place) {
    const PERMITS: u32 = 3;
    const ROUNDS: u32 = 3;
    let semaphore = place.semaphore("a", PERMITS).unwrap();
    let began = Instant::now();
    for taken in 0..PERMITS * ROUNDS {
        let guard = semaphore.acquire().unwrap();
        guard.at_least_for(SHORT);
        let least = SHORT * (taken / PERMITS);
        assert!(began.elapsed() >= least, "{taken} at {:?}", began.elapsed());
        guard.unlock().unwrap();
    }
}

pub(crate) fn permits_stay_out(place: &Place) {
    let semaphore = place.semaphore("a", 3).unwrap();
    let keep = |guard: LockGuard| {
        guard.at_least_for(LONG);
        guard.unlock().unwrap();
    };
    keep(semaphore.acquire_many(2).unwrap());
    assert_eq!(semaphore.available_permits().unwrap(), 1);
    assert!(semaphore.try_acquire_many(2).unwrap().is_none());
    keep(semaphore.try_acquire().unwrap().expect("one is left"));
    assert!(semaphore.try_acquire().unwrap().is_none());
    assert!(place.try_lock("a").unwrap().is_none());
}
