//! A lock is taken from whoever has it.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, LockState, Locker, LostReason, Result};

use super::inspect::{assert_here, look_until};
use super::kinds::each_kind;
use super::lease::assert_lost;
use super::release::{assert_free, assert_taken};
use crate::{PATIENCE, Place};

/// Bounded, so that a test fails whose lock isn't broken, and doesn't hang.
#[track_caller]
pub(crate) fn waits_for(lock: &Locker) -> LockGuard {
    let guard = lock.try_lock_for("a", PATIENCE).unwrap();
    guard.expect("it becomes free")
}

pub(crate) fn broken_lock_is_the_next_holders(place: &Place) {
    each_kind(place, |kind| {
        let (name, other) = (kind.name, place.other());
        let beside = kind.is_shared.then_some(&other);
        let lockers = [place as &Locker].into_iter().chain(beside);
        let guards: Vec<_> = lockers
            .map(|lock| (kind.take)(lock, name).unwrap())
            .collect();
        let broken = place.break_lock(name).unwrap();
        assert_eq!(broken.len(), guards.len());
        for holder in &broken {
            assert_here(holder.party.as_ref(), None);
        }
        if name == "lock" {
            assert_eq!(broken[0].token, Some(guards[0].fencing_token()));
        }
        let permits = broken.iter().map(|one| one.permits).sum::<u32>();
        assert_eq!(
            permits,
            if name == "permits" || kind.is_shared {
                2
            } else {
                1
            }
        );
        assert_eq!(place.inspect(name).unwrap().state, LockState::Free);

        let next = other.try_lock(name).unwrap().expect("it is free");
        assert!(next.was_abandoned() || !kind.is_exclusive);
        for guard in guards {
            assert!(next.fencing_token() > guard.fencing_token());
            assert_lost(&guard, LostReason::Broken);
        }
        // The broken guards' end is nobody else's, and releases what else they had.
        next.verify().unwrap();
        assert_taken(place, name);
        next.unlock().unwrap();
        kind.names()
            .iter()
            .for_each(|name| assert_free(place, name));
    });
}

/// Which hears of nothing by itself, and renews late.
pub(crate) fn end_of_its_hold_tells_the_holder(place: &Place) {
    let lock = place
        .builder()
        .ttl(Duration::from_secs(60))
        .build()
        .unwrap();
    let ends: [fn(LockGuard) -> Result<()>; 2] =
        [LockGuard::unlock, |guard| guard.downgrade().map(drop)];
    for (take, end) in [Locker::lock, Locker::write].into_iter().zip(ends) {
        let guard = take(&lock, "a").unwrap();
        place.break_lock("a").unwrap();
        let Err(Error::Lost { reason, .. }) = end(guard) else {
            panic!("it was lost")
        };
        assert_eq!(reason, LostReason::Broken);
        assert!(place.try_lock("a").unwrap().is_some());
    }
}

pub(crate) fn break_of_a_free_lock_takes_it_from_nobody(place: &Place) {
    assert_eq!(place.break_lock("a").unwrap(), []);
    assert!(!place.lock("a").unwrap().was_abandoned());
    assert_eq!(place.break_lock("a").unwrap(), []);
    assert!(!place.lock("a").unwrap().was_abandoned());
    let guard = place.lock("a").unwrap();
    assert_eq!(place.break_lock("a").unwrap().len(), 1);
    assert_eq!(place.break_lock("a").unwrap(), []);
    assert_lost(&guard, LostReason::Broken);
    assert_eq!(place.break_lock("b").unwrap(), []);
    let result = place.break_lock("");
    support::assert_like!(result, Err(Error::InvalidName { .. }));
}

pub(crate) fn break_ends_the_time_that_a_lock_is_kept(place: &Place) {
    let guard = place.lock("a").unwrap();
    guard.at_least_for(Duration::from_secs(3600));
    guard.unlock().unwrap();
    assert_eq!(place.break_lock("a").unwrap(), []);
    let next = place.try_lock("a").unwrap().expect("it is free");
    assert!(!next.was_abandoned(), "its holder had released it");
}

pub(crate) fn break_keeps_the_order_of_those_who_wait(place: &Place) {
    let guard = place.lock("a").unwrap();
    let (tell, told) = crossbeam_channel::unbounded();
    thread::scope(|scope| {
        for number in 0..3 {
            let (lock, tell) = (place.other(), tell.clone());
            scope.spawn(move || {
                let guard = waits_for(&lock);
                tell.send((number, guard.was_abandoned())).unwrap();
            });
            look_until(place, "a", |seen| seen.waiters.len() == number + 1);
        }
        place.break_lock("a").unwrap();
    });
    assert_lost(&guard, LostReason::Broken);
    let order: Vec<_> = told.try_iter().collect();
    assert_eq!(order, [(0, true), (1, false), (2, false)]);
}
