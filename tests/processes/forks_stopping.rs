//! Forks of a process with tokens, tickets and lockers to close.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crosslock::{CancelToken, Error, LostReason};

use super::forks::{assert_succeeds, exit_status, succeeds_in_a_process_of_its_own};
use super::*;
use support::{forked, is_child};

fn each_place(test: impl Fn(&str)) {
    test("memory:");
    #[cfg(feature = "file")]
    {
        let dir = temp_dir();
        test(&file_url(&dir));
    }
    #[cfg(feature = "redis")]
    {
        let server = support::RedisServer::start();
        test(&server.url());
    }
}

#[test]
fn child_forks_and_stops() {
    if !is_child("forks_stopping::child_forks_and_stops") {
        return;
    }
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

#[test]
fn tokens_and_lockers_of_a_forked_child_are_its_own() {
    each_place(|url| {
        succeeds_in_a_process_of_its_own("forks_stopping::child_forks_and_stops", url)
    });
}

#[test]
fn child_forks_while_others_are_cancelled() {
    if !is_child("forks_stopping::child_forks_while_others_are_cancelled") {
        return;
    }
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

#[test]
fn child_that_is_forked_while_others_are_cancelled_stops_on_its_own() {
    let entry = "forks_stopping::child_forks_while_others_are_cancelled";
    each_place(|url| succeeds_in_a_process_of_its_own(entry, url));
}

#[test]
fn child_forked_while_other_threads_lock_can_lock_in_memory() {
    for url in ["memory:", "memory:forked"] {
        succeeds_in_a_process_of_its_own("forks::child_forks_while_its_threads_lock", url);
    }
}
