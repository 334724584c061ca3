//! A token ends calls, and nothing else.

use std::thread;
use std::time::Duration;

use crosslock::{CancelToken, Error, LockGuard, Locker, LockerBuilder, Result};

use crate::waiting::Waiters;
use crate::{PATIENCE, Place};
use support::Stopwatch;

/// How long a call may take to end.
const BOUND: Duration = Duration::from_millis(50);

#[track_caller]
pub(crate) fn assert_cancelled<T>(outcome: Result<T>) {
    match outcome {
        Err(Error::Cancelled { name, .. }) => assert_eq!(name, "a"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it isn't cancelled"),
    }
}

/// Cancels a call of another locker that waits for that name, which this test holds.
pub(crate) fn ends(
    place: &Place,
    builder: LockerBuilder,
    name: &str,
    wait: impl FnOnce(&Locker) -> Result<Option<LockGuard>> + Send,
) {
    let (guard, token) = (place.lock(name).unwrap(), CancelToken::new());
    let waiters = Waiters::default();
    let other = builder.observer(waiters.observer()).build().unwrap();
    let other = other.with_cancel(&token);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&other));
        waiters.wait_for(1);
        let watch = Stopwatch::start();
        token.cancel();
        let outcome = waiter.join().expect("no panic");
        watch.assert_within(BOUND);
        let Err(Error::Cancelled { name: of, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(of.contains(name), "{of}");
    });
    assert!(guard.is_held());
    guard.unlock().unwrap();
    let next = place.try_lock_for(name, PATIENCE).unwrap();
    assert!(!next.expect("nobody waits any more").was_abandoned());
}

pub(crate) fn later_call_ends_at_once(place: &Place) {
    let token = CancelToken::new();
    let cancelled = place.with_cancel(&token);
    let held = cancelled.lock("held").unwrap();
    token.cancel();
    assert!(token.is_cancelled());
    assert_cancelled(cancelled.lock("a"));
    assert_cancelled(cancelled.try_lock("a"));
    assert_cancelled(cancelled.try_lock_for("a", Duration::ZERO));
    assert_cancelled(cancelled.inspect("a"));
    assert_cancelled(cancelled.break_lock("a"));
    assert_cancelled(cancelled.list("a").unwrap().next().expect("an error"));
    // Wrong arguments are told first.
    let outcome = cancelled.lock("");
    assert!(matches!(outcome, Err(Error::InvalidName { .. })));
    // The token is nobody else's, and guards stay.
    place.lock("a").unwrap().unlock().unwrap();
    held.verify().unwrap();
    held.unlock().unwrap();
}

pub(crate) fn pauses_between_attempts_end(place: &Place) {
    let minute = Duration::from_secs(60);
    let builder = place.builder().attempts(9).backoff(minute, minute, 0.0);
    ends(place, builder, "a", |lock| lock.lock("a").map(Some));
}
