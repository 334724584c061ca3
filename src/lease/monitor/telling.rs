//! How a lease is lost, how its monitor ends when the locker is closed, and what holder and observer are told.

use super::{LeaseMonitor, Lost};
use crate::base::{BootInstant, Error, Key, LostReason, sys::channel::Sender};
use crate::lease::Lease;

/// A lease that was lost, which the user's code isn't told yet.
#[derive(Debug)]
pub(crate) struct Loss {
    key: Key,
    token: u64,
    held_since: BootInstant,
    reason: LostReason,
}

impl<T: Send> LeaseMonitor<T> {
    /// Ends it for good. Whoever hears of that finds the turn given up: the others of this process needn't wait until
    /// the guard is dropped.
    pub(crate) fn lose(&self, reason: LostReason) {
        if let Some(loss) = self.lose_untold(reason) {
            self.tell_loss(&loss);
        }
    }

    /// The same without a call of the user's code. `None`: it was lost, or has ended, before.
    pub(crate) fn lose_untold(&self, reason: LostReason) -> Option<Loss> {
        let (loss, forgotten, turn) = {
            let mut state = self.state.lock();
            let (Some(lease), None) = (&state.lease, state.lost) else {
                return None;
            };
            // Of several names the others may still be there, and in use: they end with the guard.
            let stays = lease.claim.is_multi() && reason != LostReason::Expired;
            let forgotten = (!stays).then(|| lease.owner.clone());
            let loss = Loss {
                key: lease.claim.key.clone(),
                token: lease.token.number,
                held_since: lease.held_since,
                reason,
            };
            state.lost = Some(reason);
            (loss, forgotten, state.turn.take())
        };
        if let Some(owner) = forgotten {
            self.engine.abandon(&owner);
        }
        drop(turn);
        self.tell_holder(&loss.key, reason);
        Some(loss)
    }

    /// Tells the observer and the log.
    pub(crate) fn tell_loss(&self, loss: &Loss) {
        let held = || self.clock.now().since(loss.held_since);
        self.observer.lost(&loss.key, loss.token, held, loss.reason);
        log::warn!("lock {:?} is lost: {}", loss.key.name(), loss.reason);
    }

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
            self.observer
                .outage_ended(key, self.engine.endpoint(), lasted);
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
            self.observer
                .outage_began(key, self.engine.endpoint(), error);
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
