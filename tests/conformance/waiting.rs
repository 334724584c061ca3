//! How long a call waits, and what ends it.

use std::error::Error as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker, Result};

use crate::{PATIENCE, Place};
use support::{Stopwatch, Thread, wait_until};

/// Waits for what another thread holds: of the same locker, and of another.
fn each_waiter(place: &Place, test: impl Fn(&Locker)) {
    test(place);
    test(&place.builder().build().unwrap());
}

/// Drops `guard` while `wait` is in it, and returns what `wait` gave.
///
/// Without an observer nobody sees that a thread has begun to wait; a pause, at whose end it sleeps, makes it all but
/// certain.
pub(crate) fn release_meanwhile<G, T: Send>(
    guard: G,
    wait: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    const PAUSE: Duration = Duration::from_millis(20);
    thread::scope(|scope| {
        let (begin, begun) = mpsc::channel();
        let waiter = scope.spawn(move || {
            begin.send(Thread::current()).unwrap();
            wait()
        });
        let thread = begun.recv().unwrap();
        thread::sleep(PAUSE);
        wait_until("the call to wait", PATIENCE, || {
            waiter.is_finished() || thread.is_asleep()
        });
        assert!(!waiter.is_finished(), "it got in while the lock was taken");
        drop(guard);
        let released = Instant::now();
        let outcome = waiter.join().unwrap();
        assert!(released.elapsed() < PATIENCE, "{:?}", released.elapsed());
        outcome
    })
}

pub(crate) fn waiting_thread_is_served_when_the_guard_is_dropped(place: &Place) {
    each_waiter(place, |lock| {
        let guard = release_meanwhile(place.lock("a").unwrap(), || lock.lock("a")).unwrap();
        guard.verify().unwrap();
        assert!(!guard.was_abandoned());
    });
}

pub(crate) fn every_waiting_thread_is_served(place: &Place) {
    const WAITERS: usize = 8;
    let other = place.builder().build().unwrap();
    let guard = place.lock("a").unwrap();
    let tokens = thread::scope(|scope| {
        let wait = |lock: &Locker| lock.lock("a").map(|guard| guard.fencing_token());
        let waiters: Vec<_> = (0..WAITERS / 2)
            .flat_map(|_| [&**place, &other])
            .map(|lock| scope.spawn(move || wait(lock)))
            .collect();
        drop(guard);
        let tokens = waiters.into_iter().map(|waiter| waiter.join().unwrap());
        tokens.collect::<Result<std::collections::HashSet<_>>>()
    });
    assert_eq!(tokens.unwrap().len(), WAITERS);
}

/// Asserts that `wait` waits for all of `timeout`, in vain.
pub(crate) fn assert_times_out<G>(timeout: Duration, wait: impl FnOnce() -> Result<Option<G>>) {
    let watch = Stopwatch::start();
    let outcome = match wait() {
        // No answer came, for which it waits for 100 ms longer.
        Err(error @ Error::Unavailable { .. }) => {
            let most = timeout + Duration::from_millis(100);
            let found = format!("{error}: {:?}", error.source());
            return watch.assert_late(Duration::from_millis(50), most, found);
        }
        outcome => outcome.unwrap(),
    };
    let elapsed = watch.assert_within(timeout + Duration::from_millis(100));
    assert!(outcome.is_none());
    assert!(
        elapsed >= timeout,
        "{elapsed:?} is shorter than {timeout:?}"
    );
}

pub(crate) fn timed_wait_ends_after_its_timeout(place: &Place) {
    let _guard = place.lock("a").unwrap();
    each_waiter(place, |lock| {
        for millis in [1, 30, 250] {
            let timeout = Duration::from_millis(millis);
            assert_times_out(timeout, || lock.try_lock_for("a", timeout));
        }
    });
}

pub(crate) fn timed_wait_gets_a_lock_that_is_released_meanwhile(place: &Place) {
    each_waiter(place, |lock| {
        let guard = release_meanwhile(place.lock("a").unwrap(), || {
            lock.try_lock_for("a", PATIENCE)
        })
        .unwrap();
        guard.expect("it was released").verify().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let guard = release_meanwhile(place.lock("b").unwrap(), || {
            lock.try_lock_until("b", deadline)
        })
        .unwrap();
        guard.expect("it was released").verify().unwrap();
    });
}

pub(crate) fn deadline_ends_a_wait(place: &Place) {
    let _guard = place.lock("a").unwrap();
    let timeout = Duration::from_millis(120);
    each_waiter(place, |lock| {
        assert_times_out(timeout, || {
            lock.try_lock_until("a", Instant::now() + timeout)
        });
    });
}

/// The guard of "a" that one attempt gets, for which there is no time; `None` if the machine was too late for an
/// answer.
fn at_once(
    place: &Place,
    attempt: impl FnOnce() -> Result<Option<LockGuard>>,
) -> Option<LockGuard> {
    // A server that has just started, and has no such name yet, may take longer than the attempt.
    drop(place.lock("a").unwrap());
    let watch = Stopwatch::start();
    match attempt() {
        // It waits for an answer for 40 ms.
        Err(error @ Error::Unavailable { .. }) => {
            let most = Duration::from_millis(100);
            watch.assert_late(Duration::from_millis(20), most, error);
            None
        }
        guard => Some(guard.unwrap().expect("the lock is free")),
    }
}

pub(crate) fn deadline_in_the_past_tries_once(place: &Place) {
    let past = Instant::now();
    let Some(_guard) = at_once(place, || place.try_lock_until("a", past)) else {
        return;
    };
    each_waiter(place, |lock| {
        assert_times_out(Duration::ZERO, || lock.try_lock_until("a", past));
    });
}

pub(crate) fn zero_timeout_tries_once(place: &Place) {
    let Some(_guard) = at_once(place, || place.try_lock_for("a", Duration::ZERO)) else {
        return;
    };
    each_waiter(place, |lock| {
        assert_times_out(Duration::ZERO, || lock.try_lock_for("a", Duration::ZERO));
    });
}

pub(crate) fn longest_timeout_waits_for_the_release(place: &Place) {
    assert!(place.try_lock_for("a", Duration::MAX).unwrap().is_some());
    each_waiter(place, |lock| {
        let wait = || lock.try_lock_for("a", Duration::MAX);
        let guard = release_meanwhile(place.lock("a").unwrap(), wait).unwrap();
        guard.expect("it was released").verify().unwrap();
    });
}

pub(crate) fn attempts_end_in_busy(place: &Place) {
    // It ends by itself, so that a call which waits in spite of its attempts fails here and doesn't hang.
    let builder = place.builder().renew(false).attempts(3);
    let (careless, patient) = (builder.clone().build().unwrap(), builder.build().unwrap());
    let guard = careless.lock("a").unwrap();
    for lock in [&careless, &patient] {
        match lock.lock("a") {
            Err(Error::Busy { name, attempts, .. }) => {
                assert_eq!((name.as_str(), attempts), ("a", 3));
            }
            other => panic!("{other:?}"),
        }
    }
    guard.unlock().unwrap();
    patient.lock("a").unwrap().verify().unwrap();
}

pub(crate) fn attempts_end_timed_calls_with_none(place: &Place) {
    let builder = place.builder().attempts(3);
    let (holder, patient) = (builder.clone().build().unwrap(), builder.build().unwrap());
    let _guard = holder.lock("a").unwrap();
    for lock in [&holder, &patient] {
        let begun = Instant::now();
        assert!(lock.try_lock_for("a", 2 * PATIENCE).unwrap().is_none());
        let deadline = Instant::now() + 2 * PATIENCE;
        assert!(lock.try_lock_until("a", deadline).unwrap().is_none());
        assert!(lock.try_lock("a").unwrap().is_none());
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }
}

pub(crate) fn attempts_do_not_matter_when_the_lock_is_free(place: &Place) {
    let patient = place.builder().attempts(1).build().unwrap();
    for _ in 0..10 {
        patient.lock("a").unwrap().unlock().unwrap();
        assert!(patient.try_lock_for("a", PATIENCE).unwrap().is_some());
    }
}
