//! A lease is passed on: nobody else has the lock in between.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LostReason};

use crate::waiting::Waiters;
use crate::{PATIENCE, Place};

pub(crate) fn ticket_is_used_once_by_many_threads(place: &Place) {
    for _ in 0..20 {
        let ticket = place.lock("a").unwrap().into_ticket().expect("a ticket");
        let adopted = thread::scope(|scope| {
            let adopt = || scope.spawn(|| place.adopt(&ticket));
            let threads = [(); 4].map(|()| adopt());
            threads.map(|thread| thread.join().expect("no panic").ok())
        });
        let guards: Vec<_> = adopted.into_iter().flatten().collect();
        assert_eq!(guards.len(), 1);
    }
}

pub(crate) fn threads_that_wait_are_not_disturbed(place: &Place) {
    /// For so long nobody has the lease, and then somebody: time for a thread to do wrong.
    const HOLD: Duration = Duration::from_millis(50);
    let (lock, seen) = Waiters::of(place);
    let guard = lock.lock("a").unwrap();
    thread::scope(|scope| {
        let waiters = [(); 3].map(|()| {
            scope.spawn(|| {
                let guard = lock.lock("a")?;
                guard.verify()?;
                guard.unlock()
            })
        });
        seen.wait_for(3);
        let ticket = guard.into_ticket().expect("a ticket");
        thread::sleep(HOLD);
        let guard = lock.adopt(ticket).unwrap();
        thread::sleep(HOLD);
        guard.verify().unwrap();
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        guard.unlock().unwrap();
        for waiter in waiters {
            waiter.join().expect("no panic").unwrap();
        }
    });
}

pub(crate) fn lost_guard_gives_no_ticket(place: &Place) {
    let guard = place.lock("a").unwrap();
    place.break_lock("a").unwrap();
    assert!(guard.verify().is_err());
    assert!(matches!(guard.into_ticket(), Err(Error::Lost { .. })));
    let lock = place.other();
    let guard = lock.lock("a").unwrap();
    lock.close();
    assert!(matches!(guard.into_ticket(), Err(Error::Lost { .. })));
    assert!(place.try_lock("a").unwrap().is_some());
}

pub(crate) fn lease_that_was_broken_is_not_adopted(place: &Place) {
    let ticket = place.lock("a").unwrap().into_ticket().expect("a ticket");
    let next = thread::scope(|scope| {
        let waiter = scope.spawn(|| place.other().try_lock_for("a", PATIENCE));
        place.break_lock("a").unwrap();
        waiter.join().expect("no panic").unwrap()
    });
    let next = next.expect("it is free");
    let outcome = place.adopt(ticket);
    support::assert_like!(
        outcome,
        Err(Error::Lost {
            reason: LostReason::NotOwner,
            ..
        })
    );
    next.verify().unwrap();
}

pub(crate) fn ticket_of_another_namespace_is_refused_and_still_good(place: &Place) {
    let ticket = place.lock("a").unwrap().into_ticket().expect("a ticket");
    let outcome = place.with_namespace("other").unwrap().adopt(&ticket);
    let Err(Error::InvalidOption { option, reason, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(option, "ticket");
    assert!(reason.contains("namespace"), "{reason}");
    place.adopt(&ticket).unwrap().unlock().unwrap();
}

pub(crate) fn closed_locker_adopts_nothing_and_leaves_the_ticket(place: &Place) {
    let ticket = place.lock("a").unwrap().into_ticket().expect("a ticket");
    let lock = place.other();
    lock.close();
    let outcome = lock.adopt(&ticket);
    assert!(matches!(outcome, Err(Error::Cancelled { .. })));
    place.adopt(&ticket).unwrap().unlock().unwrap();
}

pub(crate) fn ticket_that_nobody_uses_lasts_for_its_ttl(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(300));
    let lock = place.builder().ttl(ttl).build().unwrap();
    let ticket = lock.lock("a").unwrap().into_ticket().expect("a ticket");
    let next = place.try_lock_for("a", PATIENCE).unwrap().expect("it ends");
    assert!(next.was_abandoned());
    assert!(matches!(lock.adopt(ticket), Err(Error::Lost { .. })));
    next.verify().unwrap();
}
