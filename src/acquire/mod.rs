//! How a thread comes to a lock: by its process's seat for the name, or by the local queue.
//!
//! Whoever has the seat asks the engine. It then stays with the guard, which hands the lease to the next thread of
//! the queue, or releases it.

pub(crate) mod acquirer;
pub(crate) mod retry_budget;
mod wait_log;

use std::sync::Arc;

use crate::acquire::acquirer::Asker;
use crate::acquire::retry_budget::Patience;
use crate::base::claim::Claim;
use crate::base::error::Result;
use crate::base::name::Key;
use crate::core::Core;
use crate::guard::LockGuard;
use crate::lease::deferred_release::Farewell;
use crate::queue::handoff::{Place, Waiter, Word};
use crate::queue::local::{Entered, Left};

/// Takes a lock, or gives `None` when it is still taken at the end of `patience`.
pub(crate) fn acquire(
    core: &Arc<Core>,
    claim: &Claim,
    mut patience: Patience,
) -> Result<Option<LockGuard>> {
    let process = std::process::id();
    if !claim.is_exclusive() || claim.has_many() {
        // Those that share stand in nobody's way here, and those that want several names in no queue: each asks for
        // itself.
        return Asker::new(core, claim, patience, Place::new(process), None, None).acquire();
    }
    let (seat, word) = match core.queues.get(process).enter(&claim.key) {
        Entered::First(seat) => (Some(seat), Word::Ask),
        Entered::Behind(waiter) => match stand_in_queue(core, claim, waiter, &mut patience) {
            Left::Given(seat, word) => (Some(seat), word),
            Left::Gone { taken: true } => return Ok(None),
            Left::Gone { taken: false } => {
                // Nobody here knows how the lock stands: one question, without waiting.
                patience.run_out();
                (None, Word::Ask)
            }
        },
    };
    let (place, renewer) = match word {
        Word::Ask => (None, None),
        Word::Wait(place, renewer) => (Some(place), renewer),
        Word::Have(lease, renewer) => {
            let now = core.clock.now();
            let lease = lease.handed_over(claim, now);
            let is_whole = lease.value.is_some() || !claim.valued;
            if is_whole && lease.is_valid(now) {
                return Ok(Some(LockGuard::new(core.clone(), lease, renewer, seat)));
            }
            if let Some(seat) = &seat {
                // The holder before said that the lock is taken: that is over, and nobody has asked since.
                seat.set_taken(false);
            }
            core.farewells
                .get(process)
                .leave(Farewell::of(lease, core.options.ttl));
            (None, renewer)
        }
    };
    let place = place.map_or_else(|| Place::new(process), |place| *place);
    Asker::new(core, claim, patience, place, seat, renewer).acquire()
}

/// Waits in the local queue. What is held here is taken, however often one looks.
fn stand_in_queue(
    core: &Core,
    claim: &Claim,
    mut waiter: Waiter,
    patience: &mut Patience,
) -> Left<Key, Word> {
    while !patience.begin() {
        let whose = "this process has or waits for";
        patience.log.wait(claim, &core.engine, whose);
        match waiter.wait(patience.next_look()) {
            Ok((seat, word)) => return Left::Given(seat, word),
            Err(still) => waiter = still,
        }
    }
    waiter.leave()
}

#[cfg(test)]
mod tests;
