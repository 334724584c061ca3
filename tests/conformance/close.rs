//! A locker is closed: its calls end, and its locks are free.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LostReason};

use crate::lease::assert_lost;
use crate::waiting::Waiters;
use crate::{PATIENCE, Place};

pub(crate) fn locks_are_free_unless_they_are_kept_and_their_guards_know(place: &Place) {
    let lock = place.other();
    let [asked, unasked] = ["a", "b"].map(|name| lock.lock(name).unwrap());
    let clone = asked.lost().clone();
    let kept = lock.lock("kept").unwrap();
    kept.at_least_for(Duration::from_secs(600));
    lock.close();
    assert!(place.try_lock("kept").unwrap().is_none());
    let free = ["a", "b"].map(|name| place.try_lock(name).unwrap());
    for guard in [&asked, &unasked] {
        assert_lost(guard, LostReason::Closed);
        assert!(guard.lost().recv().is_err(), "there is one message");
    }
    assert!(clone.recv().is_err(), "it is closed for its clones too");
    let lost = [asked.unlock(), unasked.into_ticket().map(drop)];
    for error in lost.map(Result::unwrap_err) {
        assert!(matches!(error, Error::Lost { .. }), "{error}");
    }
    for guard in free {
        let guard = guard.expect("it was released");
        assert!(!guard.was_abandoned());
        guard.verify().unwrap();
    }
}

pub(crate) fn waits_end_in_all_namespaces(place: &Place) {
    let (lock, seen) = Waiters::of(place);
    let apart = lock.with_namespace("apart").unwrap();
    let _guards = [place.lock("a").unwrap(), lock.lock("b").unwrap()];
    let _apart = place.with_namespace("apart").unwrap();
    let _apart = _apart.lock("a").unwrap();
    thread::scope(|scope| {
        let waiters = [
            scope.spawn(|| lock.lock("a")),
            // Behind its own thread.
            scope.spawn(|| lock.lock("b")),
            scope.spawn(|| apart.lock("a")),
        ];
        seen.wait_for(3);
        lock.clone().close();
        for waiter in waiters {
            let outcome = waiter.join().expect("no panic");
            support::assert_like!(outcome, Err(Error::Cancelled { .. }));
        }
    });
}

pub(crate) fn closed_locker_takes_nothing(place: &Place) {
    let lock = place.other();
    let ticket = place.lock("c").unwrap().into_ticket().expect("a ticket");
    lock.close();
    lock.close();
    for outcome in [
        lock.lock("a").map(Some),
        lock.try_lock("a"),
        lock.try_lock_for("a", PATIENCE),
        lock.lock_all(&["a", "b"]).map(Some),
        lock.adopt(&ticket).map(Some),
    ] {
        support::assert_like!(outcome, Err(Error::Cancelled { .. }));
    }
    assert!(matches!(lock.inspect("a"), Err(Error::Cancelled { .. })));
    // Others are as they were.
    place.lock("a").unwrap().unlock().unwrap();
    place.adopt(&ticket).unwrap().unlock().unwrap();
}
