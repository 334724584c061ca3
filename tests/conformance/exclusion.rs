//! Who keeps whom out.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crosslock::Locker;

use crate::Place;
use support::Stopwatch;

pub(crate) fn threads_lose_no_increment(lock: &Locker) {
    const THREADS: u64 = 8;
    const CYCLES: u64 = 40;
    let counter = AtomicU64::new(0);
    let increment = || {
        let guard = lock.lock("counter").unwrap();
        let read = counter.load(SeqCst);
        // Long enough for another thread to come between, if the lock lets it.
        thread::sleep(Duration::from_micros(50));
        counter.store(read + 1, SeqCst);
        assert!(guard.is_held());
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..CYCLES).for_each(|_| increment()));
        }
    });
    assert_eq!(counter.into_inner(), THREADS * CYCLES);
}

pub(crate) fn taken_lock_is_none_and_free_lock_is_some(lock: &Locker) {
    let guard = lock.try_lock("a").unwrap().expect("the lock is free");
    assert_eq!(guard.name(), "a");
    assert!(lock.try_lock("a").unwrap().is_none());
    assert!(lock.try_lock("a").unwrap().is_none());
    drop(guard);
    assert!(lock.try_lock("a").unwrap().is_some());
}

pub(crate) fn clones_exclude_each_other(lock: &Locker) {
    let clone = lock.clone();
    let _guard = lock.lock("a").unwrap();
    assert!(clone.try_lock("a").unwrap().is_none());
}

pub(crate) fn lockers_opened_separately_exclude_each_other(place: &Place) {
    let (one, two) = (
        place.builder().build().unwrap(),
        place.builder().build().unwrap(),
    );
    let guard = one.lock("a").unwrap();
    assert!(two.try_lock("a").unwrap().is_none());
    guard.unlock().unwrap();
    let guard = two.lock("a").unwrap();
    assert!(one.try_lock("a").unwrap().is_none());
    guard.verify().unwrap();
}

pub(crate) fn names_do_not_block_each_other(lock: &Locker) {
    let one = lock.lock("one").unwrap();
    let two = lock.try_lock("two").unwrap().expect("another lock");
    one.unlock().unwrap();
    two.verify().unwrap();
    assert!(lock.try_lock("two").unwrap().is_none());
}

pub(crate) fn namespaces_are_apart(lock: &Locker) {
    let (a, b) = (
        lock.with_namespace("apart-a").unwrap(),
        lock.with_namespace("apart-b").unwrap(),
    );
    let of_a = a.lock("x").unwrap();
    let of_b = b.try_lock("x").unwrap().expect("another namespace");
    assert!(lock.try_lock("x").unwrap().is_some());
    of_a.unlock().unwrap();
    of_b.verify().unwrap();
    assert!(b.try_lock("x").unwrap().is_none());
    // The same one, however it was come by.
    assert!(
        lock.with_namespace("apart-b")
            .unwrap()
            .try_lock("x")
            .unwrap()
            .is_none()
    );
    assert!(a.try_lock("x").unwrap().is_some());
}

pub(crate) fn empty_namespace_is_one_like_any_other(place: &Place) {
    // Names of their own, because every memory: locker of this process shares the empty namespace.
    let name = format!("plain-{}", place.url);
    let plain = place.with_namespace("").unwrap();
    let guard = plain.lock(&name).unwrap();
    guard.verify().unwrap();
    assert!(plain.try_lock(&name).unwrap().is_none());
    let built = place.builder().namespace("").build().unwrap();
    assert!(built.try_lock(&name).unwrap().is_none());
    assert!(place.try_lock(&name).unwrap().is_some());
    guard.unlock().unwrap();
    let guard = built.try_lock(&name).unwrap().expect("it was released");
    assert!(!guard.was_abandoned());
}

pub(crate) fn cycles_in_a_tight_loop_always_find_the_lock_free(lock: &Locker) {
    let watch = Stopwatch::start();
    for cycle in 0..1000 {
        let guard = lock.try_lock("loop").unwrap();
        let guard = guard.unwrap_or_else(|| panic!("cycle {cycle} finds it taken"));
        assert!(!guard.was_abandoned(), "cycle {cycle}");
        if let Err(error) = guard.unlock() {
            let most = Duration::from_millis(400);
            return watch.assert_late(most, most, error);
        }
    }
}
