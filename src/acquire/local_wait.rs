//! How a call comes to the turn (at once, with a lease that another thread offers, or by the local queue), and how one
//! gives up.

use std::{sync::Arc, time::Duration};

use super::retry_budget::RetryBudget;
use crate::base::{Claim, Deadline, Key, Registration};
use crate::queue::local::{Entered, Left};
use crate::queue::{Contender, ContenderState, Turn, TurnState, Waiter};
use crate::{core::Core, lease::deferred_release::DeferredRelease};

/// A call in the local queue. What it is given while it panics goes to the next: a logger may panic.
pub(super) struct LocalWait<'a> {
    pub(super) core: &'a Core,
    pub(super) claim: &'a Claim,
    /// `None`: it has left.
    pub(super) waiter: Option<Waiter>,
}

/// Takes the turn, or what is offered with it, or waits for either.
pub(super) fn take_turn(
    core: &Core,
    claim: &Claim,
    budget: &mut RetryBudget,
) -> Left<Key, TurnState> {
    let waiter = match core.queues.enter(&claim.key) {
        Entered::First(turn) => return Left::Given(turn, TurnState::Acquire),
        Entered::Offered(turn, state) => return Left::Given(turn, state),
        Entered::Behind(waiter) => waiter,
    };
    let waiter = Some(waiter);
    let mut left = LocalWait {
        core,
        claim,
        waiter,
    }
    .wait(budget);
    if let Left::Given(_, TurnState::Lease(lease, _)) = &mut left {
        lease.fair_since = core.clock.now();
    }
    left
}

impl LocalWait<'_> {
    /// What is held here is taken, however often one looks.
    fn wait(mut self, budget: &mut RetryBudget) -> Left<Key, TurnState> {
        let _woken = self.look_again_when_cancelled(budget.deadline());
        while !budget.begin() {
            let whose = "another call in this process holds it or waits for it";
            budget.log.wait(self.claim, self.core, whose);
            let Some(waiter) = self.waiter.take() else {
                break;
            };
            match waiter.wait(budget.next_look()) {
                Ok((turn, state)) => return Left::Given(turn, state),
                Err(still) => self.waiter = Some(still),
            }
        }
        let waiter = self.waiter.take();
        waiter.map_or(Left::Gone { taken: false }, Waiter::leave)
    }

    /// While it is registered, a cancel ends the wait.
    fn look_again_when_cancelled(&mut self, deadline: &Deadline) -> Option<Registration> {
        let cancel = deadline.cancel()?;
        let look_again = self.waiter.as_mut()?.look_again()?;
        let until = deadline.clone();
        // The registration ends this circle. Of a clock that a test moves, this is how the end of a timeout is heard.
        let wake = move || {
            if until.is_over() {
                look_again.tell();
            }
        };
        Some(cancel.on_set(Arc::new(wake)))
    }

    /// Passes on what this call can't use.
    fn pass_on(&self, turn: Turn, state: TurnState) {
        let Err((turn, state)) = turn.pass(state) else {
            return;
        };
        let renewer = match state {
            TurnState::Acquire => None,
            TurnState::Resume(contender, renewer) => {
                let at_once = Deadline::after(Duration::ZERO);
                release_contender(self.core, self.claim, &contender, &at_once);
                renewer
            }
            TurnState::Lease(lease, renewer) => {
                let release = DeferredRelease::of(*lease, self.core.options.ttl);
                self.core.deferred.leave(release);
                renewer
            }
        };
        if let Some(renewer) = renewer {
            self.core.renewers.give_back(renewer);
        }
        drop(turn);
    }
}

impl Drop for LocalWait<'_> {
    fn drop(&mut self) {
        let left = self.waiter.take().map(Waiter::leave);
        if let Some(Left::Given(turn, state)) = left {
            self.pass_on(turn, state);
        }
    }
}

/// Leaves the engine's queue, and releases what a question may have taken: by `deadline`, or else a thread does it. A
/// question that is still on its way to a server, and comes after this in spite of the engine's care, leaves the lock
/// taken for its ttl.
pub(super) fn release_contender(
    core: &Core,
    claim: &Claim,
    contender: &Contender,
    deadline: &Deadline,
) {
    if contender.state == ContenderState::Unknown {
        return;
    }
    let (claim, owner) = (claim.clone(), contender.owner.clone());
    let release = DeferredRelease::of_owner(claim, owner, core.options.ttl);
    core.deferred.make(release, deadline);
}
