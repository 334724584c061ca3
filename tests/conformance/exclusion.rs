//! Who keeps whom out.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crosslock::Locker;

use crate::Place;
use crate::lease::assert_increasing;
use support::Stopwatch;

pub(crate) fn threads_lose_no_increment_and_their_tokens_increase(lock: &Locker) {
    const THREADS: u64 = 8;
    const CYCLES: u64 = 40;
    let (counter, tokens) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let increment = || {
        let guard = lock.lock("counter").unwrap();
        let read = counter.load(SeqCst);
        // Long enough for another thread to come between, if the lock lets it.
        thread::sleep(Duration::from_micros(50));
        counter.store(read + 1, SeqCst);
        tokens.lock().unwrap().push(guard.fencing_token());
        assert!(guard.is_held());
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..CYCLES).for_each(|_| increment()));
        }
    });
    assert_eq!(counter.into_inner(), THREADS * CYCLES);
    assert_increasing(&tokens.into_inner().unwrap());
}

pub(crate) fn lockers_opened_separately_exclude_each_other(place: &Place) {
    let (one, two) = (place.other(), place.other());
    let clone = one.clone();
    let guard = one.lock("a").unwrap();
    assert!(two.try_lock("a").unwrap().is_none());
    assert!(clone.try_lock("a").unwrap().is_none());
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
