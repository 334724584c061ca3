//! The calls that wait for a lock of a fake: what each waits for, so that whoever changes something can await those
//! that it concerns.

use std::collections::HashMap;
use std::time::Instant;

use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::owner::Owner;
use crate::base::sys::sync::{Condvar, Mutex, MutexGuard};
use crate::base::sys::time;

/// The calls that wait at the moment.
#[derive(Debug, Default)]
pub(super) struct Waits {
    all: Mutex<HashMap<u64, Waiting>>,
    /// Notified when something has changed for which a call may wait, and when one begins or ends to wait.
    changed: Condvar,
}

/// What a call waits for.
#[derive(Debug)]
pub(super) enum Waiting {
    /// Its turn, the end of an outage, or its own end.
    Turn {
        claim: Claim,
        owner: Owner,
        until: Deadline,
        /// That of the world when it asked last.
        epoch: u64,
    },
    /// The answer to what it asked.
    Answer,
}

pub(super) type All<'a> = MutexGuard<'a, HashMap<u64, Waiting>>;

impl Waits {
    pub(super) fn lock(&self) -> All<'_> {
        self.all.lock()
    }

    /// Has all that wait look again.
    pub(super) fn look_again(&self) {
        // Who has looked before waits by now.
        drop(self.all.lock());
        self.changed.notify_all();
    }

    /// Waits for a change, until then at most.
    pub(super) fn await_change<'a>(&self, all: All<'a>, by: Option<Instant>) -> All<'a> {
        self.changed.wait_until(all, by)
    }

    pub(super) fn insert(&self, number: u64, waiting: Waiting) {
        self.all.lock().insert(number, waiting);
        self.changed.notify_all();
    }

    pub(super) fn remove(&self, number: u64) {
        self.all.lock().remove(&number);
    }

    /// Lets a call wait until it is due, or until then. Says whether it is due.
    pub(super) fn await_due(
        &self,
        number: u64,
        waiting: Waiting,
        is_due: impl Fn(&Waiting) -> bool,
        by: Option<Instant>,
    ) -> bool {
        let mut all = self.all.lock();
        all.insert(number, waiting);
        self.changed.notify_all();
        loop {
            let is_over = by.is_some_and(|by| by <= time::now());
            let is_due = all.get(&number).is_some_and(&is_due);
            if is_due || is_over {
                all.remove(&number);
                return is_due;
            }
            all = self.await_change(all, by);
        }
    }
}
