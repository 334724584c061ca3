//! How a thread comes to a lock: by its turn for the name, or by the local queue.
//!
//! The thread that has the turn asks the engine. The turn then stays with the guard, which hands the lease to the next
//! thread of the queue, or releases it.
//!
//! It uses `guard` and all below. What always holds here: one owner asks for a name in all attempts, but where its
//! lease was broken before it saw it; and a call that ends without a lease has passed its owner on, or takes back what
//! its questions may have done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::wait_log::WaitLog;
use crate::acquire::{acquirer::Acquirer, retry_budget::RetryBudget};
use crate::base::{
    Adopter, Cancel, Claim, Deadline, Error, LeaseTicket, LostReason, Owner, Result, sys::time,
};
use crate::engine::{Change, Engine, Grant, Outcome, Request};
use crate::lease::{Lease, deferred_release::DeferredRelease};
use crate::queue::{Contender, Turn, TurnState, local::Left};
use crate::{core::Core, guard::LockGuard};

pub(crate) mod acquirer;
mod local_wait;
pub(crate) mod retry_budget;
mod wait_log;

/// How the calls of one locker take locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls<'a> {
    pub(crate) core: &'a Arc<Core>,
    /// What ends them: the end of the core is among it.
    pub(crate) ended_by: &'a Cancel,
}

impl Calls<'_> {
    /// Blocks.
    pub(crate) fn lock(self, claim: &Claim) -> Result<LockGuard> {
        let attempts = self.core.options.attempts;
        let busy = || Error::Busy {
            name: claim.key.name().to_owned(),
            // Without a number of attempts there is no end but a guard or an error.
            attempts: attempts.unwrap_or(u32::MAX),
        };
        let or_busy = |guard: Option<LockGuard>| guard.ok_or_else(busy);
        self.acquire(claim, Deadline::NEVER, attempts, or_busy)
    }

    pub(crate) fn try_lock(self, claim: &Claim) -> Result<Option<LockGuard>> {
        self.acquire(claim, Deadline::NEVER, Some(1), Ok)
    }

    pub(crate) fn try_lock_for(
        self,
        claim: &Claim,
        timeout: Duration,
    ) -> Result<Option<LockGuard>> {
        let attempts = self.core.options.attempts;
        let deadline = Deadline::after_by(&*self.core.clock, timeout);
        self.acquire(claim, deadline, attempts, Ok)
    }

    pub(crate) fn try_lock_until(
        self,
        claim: &Claim,
        deadline: Instant,
    ) -> Result<Option<LockGuard>> {
        // The one attempt after a deadline that has passed takes time as well.
        self.try_lock_for(claim, deadline.saturating_duration_since(time::now()))
    }

    /// One that waits, whatever number of attempts the options allow a call for a lock.
    #[cfg(feature = "value")]
    pub(crate) fn wait(self, claim: &Claim) -> Result<LockGuard> {
        let waited = self.wait_until(claim, Deadline::NEVER)?;
        waited.ok_or_else(|| Error::cancelled(claim.key.name()))
    }

    /// The same, until then.
    #[cfg(feature = "value")]
    pub(crate) fn wait_until(self, claim: &Claim, deadline: Deadline) -> Result<Option<LockGuard>> {
        self.acquire(claim, deadline, None, Ok)
    }

    /// One that asks the engine, and takes nothing.
    pub(crate) fn ask<T>(
        self,
        name: &str,
        ask: impl FnOnce(&dyn Engine, &Deadline) -> Result<T>,
    ) -> Result<T> {
        if self.ended_by.is_set() {
            return Err(Error::cancelled(name));
        }
        let deadline = Deadline::NEVER.or(self.ended_by);
        match ask(&*self.core.engine, &deadline) {
            Err(Error::Unavailable { .. }) if deadline.is_cancelled() => {
                Err(Error::cancelled(name))
            }
            answer => answer,
        }
    }

    /// Makes one call. What it has to say of its end is what `finish` makes of it.
    fn acquire<T>(
        self,
        claim: &Claim,
        deadline: Deadline,
        attempts: Option<u32>,
        finish: impl FnOnce(Option<LockGuard>) -> Result<T>,
    ) -> Result<T> {
        let _call = self.core.begin(&claim.key, self.ended_by)?;
        let deadline = deadline.or(self.ended_by);
        let since = self.core.clock.instant();
        let mut budget = RetryBudget::new(deadline, attempts, &self.core.options, since);
        let guard = acquire(self.core, claim, &mut budget);
        let has_lock = matches!(guard, Ok(Some(_)));
        let outcome = guard.and_then(finish);
        if !has_lock {
            let error = outcome.as_ref().err();
            budget.log.gave_up(claim, self.core, budget.since(), error);
        }
        outcome
    }
}

/// Takes a lock, or gives `None` when it is still taken at the end of `budget`.
fn acquire(core: &Arc<Core>, claim: &Claim, budget: &mut RetryBudget) -> Result<Option<LockGuard>> {
    let (turn, state) = if is_queued_locally(claim) {
        match local_wait::take_turn(core, claim, budget) {
            Left::Given(turn, state) => (Some(turn), state),
            Left::Gone { .. } if budget.is_cancelled() => {
                return Err(Error::cancelled(claim.key.name()));
            }
            Left::Gone { taken: true } => return Ok(None),
            Left::Gone { taken: false } => {
                // Nobody here knows how the lock stands: one question, without waiting.
                budget.run_out();
                (None, TurnState::Acquire)
            }
        }
    } else {
        (None, TurnState::Acquire)
    };
    let (contender, renewer) = match state {
        TurnState::Acquire => (None, None),
        TurnState::Resume(contender, renewer) => (Some(*contender), renewer),
        TurnState::Lease(lease, renewer) => match take_over(core, claim, *lease, turn.as_ref()) {
            Some(mut lease) => {
                if core.options.observer.is_there() {
                    // It is told each token.
                    core.wait_until(lease.token_from());
                    lease.is_token_used = true;
                }
                budget.log.acquired(core, &lease, budget.since(), true);
                return LockGuard::new(core.clone(), lease, renewer, turn).map(Some);
            }
            None => (None, renewer),
        },
    };
    let contender = contender.unwrap_or_else(|| {
        let label = core.options.label.as_deref();
        Contender::new(&*core.engine, core.process, label)
    });
    Acquirer::new(core, claim, budget, contender, turn, renewer).acquire()
}

/// Whether the threads of this process ask for the lock one after the other. Readers and holders of permits stand in
/// nobody's way here, and a call that wants several names is in no queue: each asks for itself.
fn is_queued_locally(claim: &Claim) -> bool {
    claim.is_exclusive() && !claim.is_multi()
}

/// The lease that the thread before has handed over, if it is still valid and has all that this call needs.
fn take_over(core: &Core, claim: &Claim, lease: Lease, turn: Option<&Turn>) -> Option<Lease> {
    let (now, most) = (core.clock.now(), core.engine.capabilities().hand_overs);
    let lease = lease.handed_over(claim, now, most);
    let is_whole = lease.value.is_some() || !claim.has_value;
    if is_whole && lease.is_valid(now) {
        return Some(lease);
    }
    if let Some(turn) = turn {
        // The holder before said that the lock is taken: that is over, and nobody has asked since.
        turn.set_taken(false);
    }
    core.deferred
        .leave(DeferredRelease::of(lease, core.options.ttl));
    None
}

impl Calls<'_> {
    /// Goes on with the lease of a ticket, whose claim is this one.
    pub(crate) fn adopt(self, claim: &Claim, ticket: &LeaseTicket) -> Result<LockGuard> {
        let (began, _call) = (time::now(), self.core.begin(&claim.key, self.ended_by)?);
        let lost = |reason| Error::lost(claim.key.name(), reason);
        // Another call that has it makes a guard of it, or leaves it unclear.
        let mut adopter = ticket.adopter().ok_or_else(|| lost(LostReason::NotOwner))?;
        let label = self.core.options.label.as_deref();
        let owner = adopter.owner(self.core.process, label);
        let owner = owner.ok_or_else(|| lost(LostReason::NotOwner))?;
        // Before anything is taken that nobody would renew.
        let renewer = self.core.renewer(&claim.key)?;
        let adopted = self.ask_to_adopt(claim, &owner, ticket);
        if adopted.is_ok() {
            *adopter = Adopter::Final;
        }
        let lease = adopted.and_then(|grant| match grant {
            Some(grant) => self.adopted(claim, owner, grant),
            None => Err(lost(LostReason::NotOwner)),
        });
        match lease {
            Ok(lease) => {
                let mut log = WaitLog::default();
                log.acquired(self.core, &lease, began, false);
                LockGuard::new(self.core.clone(), lease, renewer, None)
            }
            Err(e) => {
                if let Some(renewer) = renewer {
                    self.core.renewers.give_back(renewer);
                }
                Err(e)
            }
        }
    }

    fn ask_to_adopt(
        self,
        claim: &Claim,
        owner: &Owner,
        ticket: &LeaseTicket,
    ) -> Result<Option<Grant>> {
        let request = Request {
            claim,
            owner,
            ttl: self.core.options.ttl,
            granted: None,
        };
        let change = Change::Adopt {
            from: &ticket.owner,
            last_used: ticket.last_used,
        };
        self.ask(claim.key.name(), |engine, deadline: &Deadline| {
            // Read before sending: the server's lease starts no earlier than this.
            let asked = self.core.clock.now();
            let Outcome::Done(done) = engine.change(request, change, deadline)? else {
                return Ok(None);
            };
            Ok(done.token.map(|token| Grant {
                token,
                value: done.value,
                since: done.since.unwrap_or(asked),
            }))
        })
    }

    fn adopted(self, claim: &Claim, owner: Owner, grant: Grant) -> Result<Lease> {
        let mut lease = Lease::new(claim.clone(), owner, grant.token);
        lease.value = grant.value;
        self.core.restart(&mut lease, grant.since);
        if lease.is_valid(lease.granted) {
            return Ok(lease);
        }
        let release = DeferredRelease::of(lease, self.core.options.ttl);
        self.core.deferred.leave(release);
        Err(Error::lost(claim.key.name(), LostReason::Expired))
    }
}

/// For the tasks of delay queues.
#[cfg(feature = "delay")]
impl Calls<'_> {
    /// Ends a task's lease, and takes the next task of its queue if one is ready: one round trip where the engine can.
    pub(crate) fn exchange(
        self,
        guard: &mut LockGuard,
        end: Arc<[u8]>,
    ) -> (Result<()>, Result<Option<LockGuard>>) {
        let (began, claim) = (time::now(), guard.claim().clone());
        let Ok(_call) = self.core.begin(&claim.key, self.ended_by) else {
            return (guard.release_storing(Some(end)), Ok(None));
        };
        let owner = Owner::of(self.core.process, self.core.options.label.as_deref());
        let (ended, grant) = match guard.release_taking(end, &owner) {
            Ok(None) => return (Ok(()), Ok(None)),
            Ok(Some(grant)) => (Ok(()), Some(*grant)),
            // It may have the next one, which only the lost answer tells.
            Err(e) => (Err(e), None),
        };
        let renewer = self.core.renewer(&claim.key);
        let (Some(grant), Ok(renewer)) = (grant, renewer) else {
            self.give_back(claim, owner);
            return (ended, Ok(None));
        };
        let next = self.adopted(&claim, owner, grant).and_then(|lease| {
            WaitLog::default().acquired(self.core, &lease, began, false);
            LockGuard::new(self.core.clone(), lease, renewer, None).map(Some)
        });
        (ended, next)
    }

    /// Has a thread release what an owner may have.
    fn give_back(self, claim: Claim, owner: Owner) {
        let release = DeferredRelease::of_owner(claim, owner, self.core.options.ttl);
        self.core.deferred.leave(release);
    }
}
