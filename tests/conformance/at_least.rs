//! Locks that stay taken for a while although they were released.

use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;

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

#[track_caller]
fn assert_free(lock: &Locker, name: &str) {
    assert!(lock.try_lock(name).unwrap().is_some(), "{name} is taken");
}

#[track_caller]
fn assert_taken(lock: &Locker, name: &str) {
    assert!(lock.try_lock(name).unwrap().is_none(), "{name} is free");
}

pub(crate) fn lock_released_early_stays_taken_until_its_time(place: &Place) {
    let other = place.builder().build().unwrap();
    for next in [&**place, &other] {
        let (began, token) = released_early(place, "a", SHORT);
        if began.elapsed() < SHORT {
            let early = [place, &other].map(|lock| lock.try_lock("a").unwrap());
            let in_time = began.elapsed() < SHORT;
            assert!(!in_time || early.iter().all(Option::is_none));
        }
        let guard = next.lock("a").unwrap();
        assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
        assert!(guard.fencing_token() > token);
        assert!(!guard.was_abandoned());
        guard.unlock().unwrap();
        assert_free(place, "a");
    }
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

pub(crate) fn drop_leaves_it_taken_also_without_a_locker(place: &Place) {
    let lock = place.builder().build().unwrap();
    let guard = lock.lock("a").unwrap();
    guard.at_least_for(LONG);
    drop((guard, lock));
    assert_taken(place, "a");
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
    let panicked = thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let guard = lock.lock("a").unwrap();
            guard.at_least_for(LONG);
            panic!("with the lock in hand, as this test wants it");
        });
        holder.join().is_err()
    });
    assert!(panicked);
    let next = lock.try_lock("a").unwrap().expect("it was released");
    assert!(next.was_abandoned());
}

/// Those that wait when it is released, and those that come after, of this locker and of others.
pub(crate) fn waiters_get_it_when_its_time_is_over(place: &Place) {
    let lock = place.builder().hand_over(PATIENCE).build().unwrap();
    let other = place.builder().build().unwrap();
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
    let other = place.builder().build().unwrap();
    let (began, _) = released_early(place, "a", SHORT);
    let given_up = other.try_lock_for("a", SHORT / 6).unwrap().is_none();
    assert!(given_up || began.elapsed() >= SHORT);
    drop(other.lock("a").unwrap());
    assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
}

pub(crate) fn lost_guard_keeps_nothing(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(100));
    let careless = place.builder().ttl(ttl).renew(false).build().unwrap();
    let guard = careless.lock("a").unwrap();
    guard.at_least_for(LONG);
    let next = place.try_lock_for("a", PATIENCE).unwrap().unwrap();
    assert!(guard.unlock().is_err());
    next.unlock().unwrap();
    assert_free(place, "a");
}

pub(crate) fn several_stay_taken_together(place: &Place) {
    let began = Instant::now();
    let guard = place.lock_all(&["a", "b"]).unwrap();
    guard.at_least_for(SHORT);
    guard.unlock().unwrap();
    let taken = ["a", "b"].map(|name| place.try_lock(name).unwrap().is_none());
    let in_time = began.elapsed() < SHORT;
    assert!(!in_time || taken == [true, true]);
    assert_free(place, "c");
    let next = place.lock_all(&["b", "c"]).unwrap();
    assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
    assert!(!next.was_abandoned());
    assert_free(place, "a");
}
