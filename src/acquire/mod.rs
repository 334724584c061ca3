//! How a thread comes to a lock: by its turn for the name, or by the local queue.
//!
//! Whoever has the turn asks the engine. It then stays with the guard, which hands the lease to the next thread of
//! the queue, or releases it.

pub(crate) mod acquirer;
mod giving_up;
pub(crate) mod retry_budget;
mod wait_log;

use std::sync::Arc;

use crate::acquire::acquirer::Acquirer;
use crate::acquire::retry_budget::RetryBudget;
use crate::base::claim::Claim;
use crate::base::error::Result;
use crate::base::name::Key;
use crate::core::Core;
use crate::guard::LockGuard;
use crate::lease::deferred_release::DeferredRelease;
use crate::queue::handoff::{Contender, Handoff, Waiter};
use crate::queue::local::{Entered, Left};

/// Takes a lock, or gives `None` when it is still taken at the end of `budget`.
pub(crate) fn acquire(
    core: &Arc<Core>,
    claim: &Claim,
    mut budget: RetryBudget,
) -> Result<Option<LockGuard>> {
    let process = std::process::id();
    if !claim.is_exclusive() || claim.has_many() {
        // Those that share stand in nobody's way here, and those that want several names in no queue: each asks for
        // itself.
        return Acquirer::new(
            core,
            claim,
            budget,
            Contender::new(&*core.engine, process),
            None,
            None,
        )
        .acquire();
    }
    let (turn, word) = match core.queues.get(process).enter(&claim.key) {
        Entered::First(turn) => (Some(turn), Handoff::Acquire),
        Entered::Behind(waiter) => match stand_in_queue(core, claim, waiter, &mut budget) {
            Left::Given(turn, word) => (Some(turn), word),
            Left::Gone { taken: true } => return Ok(None),
            Left::Gone { taken: false } => {
                // Nobody here knows how the lock stands: one question, without waiting.
                budget.run_out();
                (None, Handoff::Acquire)
            }
        },
    };
    let (contender, renewer) = match word {
        Handoff::Acquire => (None, None),
        Handoff::Resume(contender, renewer) => (Some(contender), renewer),
        Handoff::Lease(lease, renewer) => {
            let now = core.clock.now();
            let lease = lease.handed_over(claim, now);
            let is_whole = lease.value.is_some() || !claim.valued;
            if is_whole && lease.is_valid(now) {
                return Ok(Some(LockGuard::new(core.clone(), lease, renewer, turn)));
            }
            if let Some(turn) = &turn {
                // The holder before said that the lock is taken: that is over, and nobody has asked since.
                turn.set_taken(false);
            }
            core.deferred
                .get(process)
                .leave(DeferredRelease::of(lease, core.options.ttl));
            (None, renewer)
        }
    };
    let contender = contender.map_or_else(
        || Contender::new(&*core.engine, process),
        |contender| *contender,
    );
    Acquirer::new(core, claim, budget, contender, turn, renewer).acquire()
}

/// Waits in the local queue. What is held here is taken, however often one looks.
fn stand_in_queue(
    core: &Core,
    claim: &Claim,
    mut waiter: Waiter,
    budget: &mut RetryBudget,
) -> Left<Key, Handoff> {
    while !budget.begin() {
        let whose = "this process has or waits for";
        budget.log.wait(claim, &core.engine, whose);
        match waiter.wait(budget.next_look()) {
            Ok((turn, word)) => return Left::Given(turn, word),
            Err(still) => waiter = still,
        }
    }
    waiter.leave()
}

#[cfg(test)]
mod tests;
