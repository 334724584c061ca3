//! How a lock becomes free.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};

use crate::Place;
use support::Stopwatch;

#[track_caller]
pub(crate) fn assert_free(lock: &Locker, name: &str) {
    let guard = lock.try_lock(name).unwrap();
    let guard = guard.unwrap_or_else(|| panic!("{name} is taken"));
    assert!(!guard.was_abandoned(), "{name} was released in order");
}

#[track_caller]
pub(crate) fn assert_taken(lock: &Locker, name: &str) {
    assert!(lock.try_lock(name).unwrap().is_none(), "{name} is free");
}

/// A thread takes something, and panics with it.
#[track_caller]
pub(crate) fn panics_with<G>(take: impl FnOnce() -> G + Send) {
    let panicked = thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _guard = take();
            panic!("with it in hand, as this test wants it");
        });
        holder.join().is_err()
    });
    assert!(panicked);
}

/// Releases it. If the answer comes too late, as it may on a machine that was late, a thread of the locker sees to the
/// rest.
#[track_caller]
pub(crate) fn release(guard: LockGuard) {
    match guard.unlock() {
        Ok(()) | Err(Error::Unavailable { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn lock_that_is_taken_while_unwinding_is_released_in_order(lock: &Locker) {
    struct Cleaner<'a>(&'a Locker);
    impl Drop for Cleaner<'_> {
        fn drop(&mut self) {
            drop(self.0.lock("a").unwrap());
        }
    }
    panics_with(|| Cleaner(lock));
    assert_free(lock, "a");
}

pub(crate) fn guard_outlives_its_thread_and_its_locker(place: &Place) {
    // Taken by a thread that has ended before the second renewal.
    let ttl = place.ttl(Duration::from_millis(300));
    let lock = place.builder().ttl(ttl).build().unwrap();
    let taken = thread::spawn(move || lock.lock("a").unwrap());
    let guard = taken.join().unwrap();
    let holder = thread::spawn(move || {
        let watch = Stopwatch::start();
        thread::sleep(2 * ttl);
        (guard.verify(), guard, watch)
    });
    let (verified, guard, watch) = holder.join().unwrap();
    if let Err(error) = verified {
        return watch.assert_late(ttl / 2, ttl, error);
    }
    assert!(place.try_lock("a").unwrap().is_none());
    thread::scope(|scope| scope.spawn(|| guard.check()).join().unwrap()).unwrap();
    guard.unlock().unwrap();
    assert_free(place, "a");
}
