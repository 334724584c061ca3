//! Forks of a process with tokens, tickets and lockers to close.

use crosslock::{CancelToken, Error, LostReason};

use super::forks::assert_succeeds;
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
