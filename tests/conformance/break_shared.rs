//! A lock that many may hold is taken from them, and those that wait keep their order.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker, LostReason};

use super::break_lock::{TTL, assert_broken, waits_for};
use super::inspect::look_until;
use super::list::listed;
use crate::{PATIENCE, Place};

pub(crate) fn downgrade_tells_the_holder(place: &Place) {
    let lock = place.builder().ttl(TTL).build().unwrap();
    let writing = lock.write("a").unwrap();
    place.break_lock("a").unwrap();
    let Err(Error::Lost { reason, .. }) = writing.downgrade() else {
        panic!("it was lost")
    };
    assert_eq!(reason, LostReason::Broken);
    assert!(place.try_read("a").unwrap().is_some());
}

pub(crate) fn break_keeps_the_order_of_those_who_wait(place: &Place) {
    let guard = place.lock("a").unwrap();
    let (tell, told) = crossbeam_channel::unbounded();
    thread::scope(|scope| {
        for number in 0..3 {
            let (lock, tell) = (place.builder().build().unwrap(), tell.clone());
            scope.spawn(move || {
                let guard = waits_for(&lock);
                tell.send((number, guard.was_abandoned())).unwrap();
            });
            look_until(place, "a", |seen| seen.waiters.len() == number + 1);
        }
        place.break_lock("a").unwrap();
    });
    assert_broken(&guard);
    let order: Vec<_> = told.try_iter().collect();
    assert_eq!(order, [(0, true), (1, false), (2, false)]);
}

pub(crate) fn broken_readers_let_in_a_writer(place: &Place) {
    let other = place.builder().build().unwrap();
    let readers = [place.read("a").unwrap(), other.read("a").unwrap()];
    let largest = readers.iter().map(LockGuard::fencing_token).max().unwrap();
    assert_eq!(place.break_lock("a").unwrap().len(), 2);
    let writer = place.try_lock("a").unwrap().expect("it is free");
    assert!(writer.fencing_token() > largest);
    readers.iter().for_each(assert_broken);
    drop(readers);
    writer.verify().unwrap();
}

pub(crate) fn broken_permits_come_back(place: &Place) {
    let semaphore = place.semaphore("a", 3).unwrap();
    let permits = [
        semaphore.acquire().unwrap(),
        semaphore.acquire_many(2).unwrap(),
    ];
    let broken = place.break_lock("a").unwrap();
    assert_eq!(broken.iter().map(|one| one.permits).sum::<u32>(), 3);
    let all = semaphore.try_acquire_many(3).unwrap();
    let all = all.expect("they came back");
    permits.iter().for_each(assert_broken);
    drop(permits);
    all.verify().unwrap();
    assert_eq!(semaphore.available_permits().unwrap(), 0);
}

pub(crate) fn break_frees_what_a_waiter_for_several_names_has(place: &Place) {
    fn locker(place: &Place) -> Locker {
        place.builder().build().unwrap()
    }
    let guard = place.lock("b").unwrap();
    thread::scope(|scope| {
        let (both, single) = (locker(place), locker(place));
        let waits = scope.spawn(move || both.try_lock_all_for(&["a", "b"], PATIENCE));
        look_until(place, "b", |seen| !seen.waiters.is_empty());
        place.break_lock("a").unwrap();
        place.break_lock("b").unwrap();
        let both = waits.join().unwrap().unwrap();
        drop(both.expect("both become free"));
        assert!(single.try_lock_for("a", PATIENCE).unwrap().is_some());
    });
    assert_broken(&guard);
}

pub(crate) fn names_that_many_hold_are_listed(place: &Place) {
    let _readers = [
        place.read("reading").unwrap(),
        place.read("reading").unwrap(),
    ];
    let semaphore = place.semaphore("semaphore", 3).unwrap();
    let _permit = semaphore.acquire().unwrap();
    assert_eq!(listed(place, ""), ["reading", "semaphore"]);
}

pub(crate) fn downgrade_tells_a_holder_that_its_lock_was_broken(place: &Place) {
    // It hears of nothing by itself, and renews late.
    let lock = place.builder().ttl(Duration::from_secs(60));
    let guard = lock.build().unwrap().lock("a").unwrap();
    place.break_lock("a").unwrap();
    let Err(Error::Lost { reason, .. }) = guard.downgrade() else {
        panic!("it was lost")
    };
    assert_eq!(reason, LostReason::Broken);
}
