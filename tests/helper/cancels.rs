//! Forks of a process with tokens, tickets and lockers to close.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crosslock::{CancelToken, Error, LostReason};

use super::forks::{assert_succeeds, exit_status};
use super::*;
use support::forked;

pub(crate) fn stop() {
    let (lock, token) = (locker(), CancelToken::new());
    let cancelled = lock.with_cancel(&token);
    let held = cancelled.lock("held").unwrap();
    let passed = cancelled.lock("passed").unwrap();
    let pid = forked(|| {
        // An inherited guard has nothing to pass on.
        let lost = passed.into_ticket();
        assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
        let own = cancelled.lock("own").unwrap();
        token.cancel();
        let outcome = cancelled.lock("other");
        assert!(matches!(outcome, Err(Error::Cancelled { .. })));
        lock.lock("other").unwrap().unlock().unwrap();
        lock.close();
        let lost = own.lost().recv().unwrap();
        assert_eq!(lost.reason, LostReason::Closed);
        assert!(held.lost().is_empty());
        let outcome = lock.lock("other");
        assert!(matches!(outcome, Err(Error::Cancelled { .. })));
    });
    assert_succeeds(pid);
    // Here nothing was cancelled or closed.
    assert!(!token.is_cancelled());
    held.verify().unwrap();
    cancelled.lock("own").unwrap().unlock().unwrap();
    token.cancel();
    lock.close();
    let pid = forked(|| {
        assert!(token.is_cancelled());
        let outcome = cancelled.lock("other");
        assert!(matches!(outcome, Err(Error::Cancelled { .. })));
        // A child begins with a locker of its own.
        drop(lock.lock("other").unwrap());
    });
    assert_succeeds(pid);
}

pub(crate) fn while_others_are_cancelled() {
    let (lock, stop) = (locker(), AtomicBool::new(false));
    let _held = lock.lock("held").unwrap();
    let shared = CancelToken::new();
    let cancelled = lock.with_cancel(&shared);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                // The locks of tokens are taken and released all the time.
                while !stop.load(Ordering::Relaxed) {
                    let _ = cancelled.try_lock_for("held", Duration::from_micros(50));
                    let token = CancelToken::new();
                    let both = cancelled.with_cancel(&token);
                    token.cancel();
                    drop(both.lock("held"));
                }
            });
        }
        for round in 0..100 {
            let pid = forked(|| {
                let guard = cancelled.lock("childs").unwrap();
                shared.cancel();
                assert!(cancelled.lock("other").is_err());
                lock.close();
                assert!(!guard.is_held());
            });
            let status = exit_status(pid);
            stop.store(status != Some(0), Ordering::Relaxed);
            assert_eq!(status, Some(0), "fork {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}
