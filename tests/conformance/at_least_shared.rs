//! Shares of a lock that stay taken for a while although they were released.

use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker};

use crate::Place;

/// Nothing here takes as long.
const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(300);

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

pub(crate) fn writer_gets_in_when_the_readers_time_is_over(place: &Place) {
    let began = reads_early(place, SHORT);
    // Another reader neither ends nor extends it.
    reads_early(place, Duration::ZERO);
    let guard = place.write("a").unwrap();
    assert!(began.elapsed() >= SHORT, "{:?}", began.elapsed());
    assert!(!guard.was_abandoned());
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
