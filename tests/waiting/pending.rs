//! Calls in threads of their own.

use std::sync::mpsc::{self, Receiver};
use std::thread;

use crosslock::{LockGuard, Locker, Result};
use support::{Thread, wait_until};

use super::PATIENCE;

/// What a call of `lock` in a thread of its own will give.
pub(crate) struct Pending {
    pub(crate) outcome: Receiver<Result<LockGuard>>,
    pub(crate) thread: Thread,
}

/// A call of `lock` in a thread of its own.
pub(crate) fn waiting(lock: &Locker, name: &str) -> Pending {
    let (tell, outcome) = mpsc::channel();
    let (identify, identity) = mpsc::channel();
    let (lock, name) = (lock.clone(), name.to_owned());
    thread::spawn(move || {
        identify.send(Thread::current()).unwrap();
        // Nobody listens when the test has failed.
        let _ = tell.send(lock.lock(&name));
    });
    let thread = identity.recv().unwrap();
    Pending { outcome, thread }
}

impl Pending {
    #[track_caller]
    pub(crate) fn outcome(&self) -> Result<LockGuard> {
        let outcome = self.outcome.recv_timeout(PATIENCE);
        outcome.expect("it never returned")
    }

    #[track_caller]
    pub(crate) fn result(&self) -> LockGuard {
        self.outcome().unwrap()
    }

    /// Waits until the thread sleeps: that it stands in the local queue can't be seen otherwise.
    #[track_caller]
    pub(crate) fn wait_until_asleep(&self) {
        wait_until("a thread to wait", PATIENCE, || self.thread.is_asleep());
    }
}

/// So many calls of `lock`, which stand in the local queue in this order: the lock is held by this locker, or another
/// thread asks for it.
pub(crate) fn queued(lock: &Locker, name: &str, count: usize) -> Vec<Pending> {
    let one = |_| {
        let one = waiting(lock, name);
        one.wait_until_asleep();
        one
    };
    (0..count).map(one).collect()
}
