//! How a guard ends that is dropped, and what the observer is told of any end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use super::{LockGuard, release::Ended};
use crate::base::{Deadline, ErrorChain, LostReason};
#[cfg(feature = "delay")]
use crate::base::{Event, Key};
use crate::lease::Lease;

/// Whether a call has ended it.
#[cfg(feature = "value")]
impl LockGuard {
    pub(crate) fn has_ended(&self) -> bool {
        self.monitor.has_ended()
    }
}

/// For the tasks of delay queues.
#[cfg(feature = "delay")]
impl LockGuard {
    /// Tells the observer what has happened to a task.
    pub(crate) fn tell<'a>(&'a self, event: impl FnOnce(&'a Key, u64) -> Event<'a>) {
        let observer = &self.core.options.observer;
        observer.tell(|| event(&self.claim.key, self.token.number));
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.monitor.has_ended() && self.slot.is_none() {
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
        if let Some(slot) = self.slot.take() {
            self.core.remove_guard(slot);
        }
    }

    fn release_dropped(&mut self) {
        let panicked = self.is_panicked();
        // A logger that panics must not end a process whose thread is unwinding.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Err(e) = self.release(None, &Deadline::NEVER, panicked) {
                log::warn!("can't release a lock on drop: {}", ErrorChain(&e));
            }
        }));
        self.tell_released();
    }

    /// Keeps in mind that an end is to be told, of the lease that the monitor has just given away.
    pub(super) fn note_end(&mut self, lease: &Lease) {
        if self.core.options.observer.is_there() && self.monitor.lost_reason().is_none() {
            self.held = Some(self.core.clock.now().since(lease.held_since));
        }
    }

    /// A release of which nothing is known will be made, or the lease ends by itself: its holder has let it go.
    pub(super) fn tell_end(&mut self, ended: Option<&Ended>) {
        match ended {
            Some(Ended::Lost(reason)) => self.tell_lost(*reason),
            Some(Ended::Ours(_)) | None => self.tell_released(),
        }
    }

    pub(super) fn tell_released(&mut self) {
        if let Some(held) = self.held.take() {
            let observer = &self.core.options.observer;
            observer.released(&self.claim.key, self.token.number, held);
        }
    }

    pub(super) fn tell_lost(&mut self, reason: LostReason) {
        if let Some(held) = self.held.take() {
            let observer = &self.core.options.observer;
            observer.lost(&self.claim.key, self.token.number, || held, reason);
        }
    }
}
