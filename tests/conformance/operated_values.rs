//! What operators and tokens do to locks that protect values.

use std::thread;
use std::time::Duration;

use crosslock::{CancelToken, Error, LostReason};

use super::inspect::{listed, look_until};
use crate::Place;
use crate::cancel::assert_cancelled;
use crate::waiting::Waiters;

pub(crate) fn value_that_nobody_locks_is_not_listed(place: &Place) {
    let mutex = place.mutex("a", 0).unwrap();
    mutex.update(|value| *value += 1).unwrap();
    assert_eq!(listed(place, ""), [""; 0]);
    let _guard = mutex.lock().unwrap();
    assert_eq!(listed(place, ""), ["a"]);
}

pub(crate) fn broken_guard_stores_nothing(place: &Place) {
    let mutex = place.mutex("a", 1).unwrap();
    mutex.update(|value| *value = 2).unwrap();
    let mut guard = mutex.lock().unwrap();
    *guard = 3;
    place.break_lock("a").unwrap();
    let other = place.other();
    let other = other.mutex("a", 1).unwrap();
    let next = other.try_lock().unwrap().expect("it is free");
    assert_eq!(*next, 2);
    drop(guard);
    drop(next);
    assert_eq!(*mutex.lock().unwrap(), 2);
}

pub(crate) fn update_tells_a_holder_that_its_lock_was_broken(place: &Place) {
    // It hears of nothing by itself, and renews late. Another thread waits, so that the value is stored before the
    // lease is handed over.
    let waiters = Waiters::default();
    let lock = place.builder().ttl(Duration::from_secs(60));
    let lock = lock.observer(waiters.observer());
    let lock = lock.hand_over(Duration::from_secs(60)).build().unwrap();
    let mutex = lock.mutex("a", 1).unwrap();
    thread::scope(|scope| {
        let (tell, told) = crossbeam_channel::bounded(1);
        let mutex = &mutex;
        let updates = scope.spawn(move || {
            mutex.update(|value| {
                told.recv().unwrap();
                *value = 2;
            })
        });
        look_until(place, "a", |seen| !seen.holders.is_empty());
        let waits = scope.spawn(move || *mutex.lock().unwrap());
        waiters.wait_for(1);
        place.break_lock("a").unwrap();
        tell.send(()).unwrap();
        let Err(Error::Lost { reason, .. }) = updates.join().unwrap() else {
            panic!("it was lost")
        };
        assert_eq!(reason, LostReason::Broken);
        assert_eq!(waits.join().unwrap(), 1);
    });
}

pub(crate) fn lock_with_a_value_ends(place: &Place) {
    let token = CancelToken::new();
    let (lock, waiters) = Waiters::of(place);
    let mutex = lock.with_cancel(&token).mutex("a", 1_u64).unwrap();
    let guard = lock.mutex("a", 1_u64).unwrap();
    let guard = guard.lock().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.lock().map(drop));
        waiters.wait_for(1);
        token.cancel();
        assert_cancelled(waiter.join().expect("no panic"));
    });
    assert_cancelled(mutex.peek());
    assert_cancelled(mutex.remove());
    drop(guard);
}
