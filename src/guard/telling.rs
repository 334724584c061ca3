//! How a guard tells the observer of its end.
//!
//! A lease that was lost before its guard ended was told by its monitor. Of any other the guard tells once how it ended, at
//! the latest when it is dropped.

use super::LockGuard;
use super::release::Ended;
use crate::base::error::LostReason;
use crate::lease::Lease;

impl LockGuard {
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
            Some(Ended::Ours) | None => self.tell_released(),
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
