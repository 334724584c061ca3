//! Who keeps whom out.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crosslock::{LockGuard, Locker, Result};

use crate::Place;
use crate::release::release;

/// Threads of two lockers take the same few names, alone, together and in any order: it is counted who is inside.
pub(crate) fn threads_exclude_each_other_in_every_way(place: &Place) {
    const THREADS: u32 = 8;
    const TURNS: u32 = 50;
    /// One who has a name alone counts for more than may share it.
    const ALONE: u32 = 100;
    let (other, inside) = (place.other(), [const { AtomicU32::new(0) }; 3]);
    let hold = |guard: Result<LockGuard>, names: &[usize], weight: u32, most: u32| {
        let guard = guard.unwrap();
        for name in names {
            let now = inside[*name].fetch_add(weight, SeqCst) + weight;
            assert!(now <= most, "{now} are in {name} instead of {most}");
        }
        // Long enough for another thread to come between, if the lock lets it.
        thread::sleep(Duration::from_micros(50));
        for name in names {
            inside[*name].fetch_sub(weight, SeqCst);
        }
        release(guard);
    };
    let take = |lock: &Locker, turn: u32| match turn % 7 {
        0 => hold(lock.lock("0"), &[0], ALONE, ALONE),
        1 => hold(lock.write("1"), &[1], ALONE, ALONE),
        2 => hold(lock.read("0"), &[0], 1, THREADS),
        3 => hold(lock.read("1"), &[1], 1, THREADS),
        4 => hold(lock.lock_all(&["0", "1"]), &[0, 1], ALONE, ALONE),
        5 => hold(lock.lock_all(&["2", "1"]), &[1, 2], ALONE, ALONE),
        _ => {
            let (permits, count) = (lock.semaphore("2", 3).unwrap(), 1 + turn % 3);
            hold(permits.acquire_many(count), &[2], count, 3);
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lock, take) = ([place as &Locker, &other][thread as usize % 2], &take);
            scope.spawn(move || (0..TURNS).for_each(|turn| take(lock, 3 * thread + turn)));
        }
    });
    for name in ["0", "1", "2"] {
        assert!(place.try_lock(name).unwrap().is_some(), "{name} is taken");
    }
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
