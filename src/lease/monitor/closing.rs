//! How a monitor ends when its locker is closed.

use super::LeaseMonitor;
use super::telling::tell_lost;
use crate::base::error::LostReason;
use crate::lease::Lease;

impl<T: Send> LeaseMonitor<T> {
    /// Ends it as [`end`](Self::end) does, for a locker that is closed, and tells its holder.
    pub(crate) fn close(&self) -> Option<(Lease, Option<T>)> {
        // Made now if nobody has asked for it: the message tells the lease's name.
        self.lost();
        let mut state = self.state.lock();
        let lease = state.lease.take()?;
        state.closed = true;
        let was_lost = state.lost.is_some();
        let reason = *state.lost.get_or_insert(LostReason::Closed);
        if let Some(tell) = state.tell.take() {
            tell_lost(&tell, &lease.claim.key, reason);
        }
        let turn = state.turn.take();
        drop(state);
        self.ended.set();
        if !was_lost {
            let held = || self.clock.now().since(lease.held_since);
            let token = lease.token.number;
            self.observer.lost(&lease.claim.key, token, held, reason);
        }
        Some((lease, turn))
    }

    /// Whether its guard has ended it, and may not have released it yet.
    pub(crate) fn is_being_released(&self) -> bool {
        let state = self.state.lock();
        state.lease.is_none() && !state.closed
    }
}
