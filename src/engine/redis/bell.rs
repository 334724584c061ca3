//! What wakes a waiter, wherever its messages come from.

use std::time::Instant;

use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::time;

/// Wakes one thread, which may be about to sleep.
#[derive(Debug, Default)]
pub(super) struct Bell {
    has_rung: Mutex<bool>,
    condvar: Condvar,
}

impl Bell {
    pub(super) fn ring(&self) {
        *self.has_rung.lock() = true;
        self.condvar.notify_one();
    }

    /// Blocks until it rings, or has rung since the last wait; until then at most, `None` is never.
    pub(super) fn wait_until(&self, until: Option<Instant>) {
        let mut has_rung = self.has_rung.lock();
        while !*has_rung && until.is_none_or(|until| time::now() < until) {
            has_rung = self.condvar.wait_until(has_rung, until);
        }
        *has_rung = false;
    }
}
