//! A locker is closed: its calls end, and its locks are free.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker, LostReason};

use crate::offers::generous;
use crate::waiting::Waiters;
use crate::{PATIENCE, Place};
use support::{Stopwatch, wait_until};

const BOUND: Duration = Duration::from_millis(500);

#[track_caller]
fn close_in_time(lock: &Locker) {
    let watch = Stopwatch::start();
    lock.close();
    watch.assert_within(BOUND);
}

#[track_caller]
fn assert_closed(guard: &LockGuard) {
    assert!(!guard.is_held());
    assert_eq!(guard.remaining(), Duration::ZERO);
    for error in [guard.check().unwrap_err(), guard.verify().unwrap_err()] {
        let Error::Lost { reason, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(reason, LostReason::Closed);
    }
}

pub(crate) fn locks_are_free_unless_they_are_kept_and_their_guards_know(place: &Place) {
    let lock = place.other();
    let [asked, unasked] = ["a", "b"].map(|name| lock.lock(name).unwrap());
    let clone = asked.lost().clone();
    let kept = lock.lock("kept").unwrap();
    kept.at_least_for(Duration::from_secs(600));
    close_in_time(&lock);
    assert!(place.try_lock("kept").unwrap().is_none());
    let free = ["a", "b"].map(|name| place.try_lock(name).unwrap());
    for guard in [&asked, &unasked] {
        assert_closed(guard);
        let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
        assert_eq!(
            (lost.name.as_str(), lost.reason),
            (guard.name(), LostReason::Closed)
        );
        assert!(guard.lost().recv().is_err(), "there is one message");
    }
    assert!(clone.recv().is_err(), "it is closed for its clones too");
    let unlocked = asked.unlock();
    support::assert_like!(
        unlocked,
        Err(Error::Lost {
            reason: LostReason::Closed,
            ..
        })
    );
    drop(unasked);
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
        close_in_time(&lock.clone());
        for waiter in waiters {
            let outcome = waiter.join().expect("no panic");
            support::assert_like!(outcome, Err(Error::Cancelled { .. }));
        }
    });
}

pub(crate) fn closed_locker_takes_nothing(place: &Place) {
    let lock = place.other();
    lock.close();
    lock.close();
    for outcome in [
        lock.lock("a").map(Some),
        lock.try_lock("a"),
        lock.try_lock_for("a", PATIENCE),
        lock.lock_all(&["a", "b"]).map(Some),
    ] {
        support::assert_like!(outcome, Err(Error::Cancelled { .. }));
    }
    assert!(matches!(lock.inspect("a"), Err(Error::Cancelled { .. })));
    // Others are as they were.
    place.lock("a").unwrap().unlock().unwrap();
}

pub(crate) fn waiters_of_others_are_served(place: &Place) {
    let lock = place.other();
    let _guard = lock.lock("a").unwrap();
    let (waiting, waiters) = Waiters::of(place);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| waiting.try_lock_for("a", PATIENCE));
        waiters.wait_for(1);
        close_in_time(&lock);
        let served = waiter.join().expect("no panic").unwrap();
        assert!(!served.expect("it is its turn").was_abandoned());
    });
}

pub(crate) fn nothing_stays_taken_whatever_meets_the_close(place: &Place) {
    for round in 0..24 {
        let watch = Stopwatch::start();
        let lock = if round % 2 == 0 {
            place.other()
        } else {
            generous(place)
        };
        if let Err(unreleased) = close_amid_turns(place, &lock, round) {
            // A release has 400 ms to be answered, and a close has not much more.
            return watch.assert_late(Duration::from_millis(400), BOUND, unreleased);
        }
    }
}

/// Closes a locker once its threads have had so many turns, and looks that all is free. From round to round the close
/// meets the threads at another moment of their work.
fn close_amid_turns(place: &Place, lock: &Locker, turns: u32) -> Result<(), String> {
    let taken = &AtomicU32::new(0);
    thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|thread| {
            let name = ["a", "b"][thread % 2];
            // Dropped, unlocked, or still there when it is closed.
            scope.spawn(move || lock_until_closed(lock, name, thread == 0, taken))
        });
        wait_until("some turns", PATIENCE, || taken.load(Relaxed) > turns);
        let closers = [(); 2].map(|()| scope.spawn(|| close_in_time(lock)));
        for closer in closers {
            closer.join().expect("no panic");
        }
        // When it has returned, not a little later.
        for name in ["a", "b"] {
            let guard = place.try_lock(name).map_err(|e| e.to_string())?;
            let guard = guard.ok_or(format!("{name} is still taken"))?;
            guard.unlock().map_err(|e| e.to_string())?;
        }
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic"))
    })
}

/// Fails when the answer to a release is missing.
fn lock_until_closed(
    lock: &Locker,
    name: &str,
    drops: bool,
    taken: &AtomicU32,
) -> Result<(), String> {
    loop {
        let guard = match lock.lock(name) {
            Ok(guard) => guard,
            Err(Error::Cancelled { .. }) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        if drops {
            drop(guard);
            continue;
        }
        match guard.unlock() {
            Ok(()) => _ = taken.fetch_add(1, Relaxed),
            Err(Error::Lost { reason, .. }) => assert_eq!(reason, LostReason::Closed),
            Err(error @ Error::Unavailable { .. }) => return Err(error.to_string()),
            Err(error) => panic!("{error}"),
        }
    }
}
