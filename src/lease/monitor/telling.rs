//! What a monitor tells its holder of a loss, and the observer of its lease's renewals.

use crossbeam_channel::Sender;

use super::{LeaseMonitor, Lost};
use crate::base::error::{Error, LostReason};
use crate::base::name::Key;

impl<T: Send> LeaseMonitor<T> {
    /// The lease was lost, and its turn is given up.
    pub(super) fn tell_holder(&self, key: &Key, reason: LostReason) {
        let mut state = self.state.lock();
        state.told = true;
        if let Some(tell) = state.tell.take() {
            tell_lost(&tell, key, reason);
        }
    }

    /// A renewal was answered: that ends an outage.
    pub(super) fn tell_answer(&self, key: &Key) {
        let failing = self.state.lock().failing.take();
        if let Some(since) = failing {
            let lasted = || self.clock.now().since(since);
            self.observer.outage_ended(key, self.engine.place(), lasted);
        }
    }

    /// A renewal failed. That of a lease which has ended meanwhile is nobody's concern: its guard cuts it short.
    pub(super) fn tell_failure(&self, key: &Key, is_first: bool, error: &Error) {
        if !self.observer.is_there() {
            return;
        }
        let (token, remaining) = {
            let state = self.state.lock();
            let (Some(lease), None) = (&state.lease, state.lost) else {
                return;
            };
            (lease.token.number, lease.remaining(self.clock.now()))
        };
        if is_first {
            self.observer.outage_began(key, self.engine.place(), error);
        }
        self.observer.renewal_failed(key, token, remaining, error);
    }
}

pub(super) fn tell_lost(tell: &Sender<Lost>, key: &Key, reason: LostReason) {
    // It has room for the one message that is ever sent.
    let _ = tell.try_send(Lost {
        name: key.name().to_owned(),
        reason,
    });
}
