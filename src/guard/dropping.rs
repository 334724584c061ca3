//! How a guard is dropped: by its holder, by a panic, after a call that ended it, or in a child that inherited it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use super::LockGuard;
use crate::base::clock::Deadline;
use crate::base::error::Whole;

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.monitor.has_ended() && self.place.is_none() {
            self.tell_released();
            return;
        }
        if self.is_inherited() {
            // The parent's: not even its channel may be closed here.
            std::mem::forget((self.renewer.take(), self.monitor.clone(), self.core.clone()));
            return;
        }
        if self.monitor.has_ended() {
            // A release that panicked hasn't told it.
            self.tell_released();
        } else {
            self.release_dropped();
        }
        self.leave_registry();
    }
}

impl LockGuard {
    /// Whether this thread is unwinding by a panic that began while it was held.
    pub(crate) fn is_panicked(&self) -> bool {
        thread::panicking() && !self.panicking
    }

    /// When the lease is released, or somebody else has it.
    pub(super) fn leave_registry(&mut self) {
        if let Some(place) = self.place.take() {
            self.core.remove_guard(place);
        }
    }

    fn release_dropped(&mut self) {
        let panicked = self.is_panicked();
        // A logger that panics must not end a process whose thread is unwinding.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Err(e) = self.release(None, &Deadline::NEVER, panicked) {
                log::warn!("not released on drop: {}", Whole(&e));
            }
        }));
        self.tell_released();
    }
}
