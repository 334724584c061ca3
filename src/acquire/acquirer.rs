//! The one loop in which the engine is asked for a lock, by the thread that has its process's turn for the name.
//!
//! A call goes through these states; what it owns moves along:
//!
//! | state | it owns | left by |
//! |---|---|---|
//! | behind another thread (`acquire`) | its place in the local queue | the turn: next state, or a lease; its deadline: `None` |
//! | asking | the turn, the [`Contender`], a renewer | an answer: granted, taken, broken, or none |
//! | broken | the same | at once: asking, by another owner, at the end of the engine's queue. That is the same attempt |
//! | waiting | the same | a grant; or it is time to ask again |
//! | granted | the turn, the lease, the renewer | they become a guard |
//! | cancelled | as before | at once: giving up; what a question may have done is left as unclear |
//! | giving up | the turn, the contender, the renewer | the next thread of the process gets all three; without one, the owner leaves the engine's queue |

use std::time::{Duration, Instant};
use std::{ops::ControlFlow, sync::Arc};

use super::{local_wait::release_contender, retry_budget::RetryBudget};
use crate::base::{Claim, Deadline, Error, Result, limits::GRACE};
use crate::engine::{Answer, Failed, Grant, Request};
use crate::lease::{Lease, deferred_release::DeferredRelease, renewer::Renewer};
use crate::queue::{Contender, ContenderState, Turn, TurnState};
use crate::{core::Core, guard::LockGuard};

/// The thread that asks the engine for a name.
pub(crate) struct Acquirer<'a> {
    core: &'a Arc<Core>,
    claim: &'a Claim,
    budget: &'a mut RetryBudget,
    contender: Contender,
    /// `None` for a single question beside the thread that has the turn.
    turn: Option<Turn>,
    renewer: Option<Renewer>,
    outage: Option<Outage>,
}

/// The engine can't be reached.
struct Outage {
    since: Instant,
    error: Error,
}

/// What came of a question that ends in no lease.
enum Asked {
    /// The answer took as long as the lease was for. The same owner gets a new lease if it asks at once.
    GrantedTooLate,
    Taken {
        /// Whether the owner waits now, or is about to begin.
        is_queued: bool,
        /// Who has the lock, if the engine says so.
        holder: Option<String>,
    },
    /// The engine can't be reached, which may pass.
    Failed,
}

impl<'a> Acquirer<'a> {
    pub(crate) fn new(
        core: &'a Arc<Core>,
        claim: &'a Claim,
        budget: &'a mut RetryBudget,
        contender: Contender,
        turn: Option<Turn>,
        renewer: Option<Renewer>,
    ) -> Self {
        Acquirer {
            core,
            claim,
            budget,
            contender,
            turn,
            renewer,
            outage: None,
        }
    }

    /// Asks until it has the lock or the budget is used up.
    pub(crate) fn acquire(mut self) -> Result<Option<LockGuard>> {
        let outcome = self.run();
        if let Ok(Some(lease)) = outcome {
            self.set_taken(true);
            // A grant that was heard is an answer too.
            self.budget.log.answer(self.claim, self.core);
            let since = self.budget.since();
            self.budget.log.acquired(self.core, &lease, since, false);
            let guard = LockGuard::new(self.core.clone(), lease, self.renewer, self.turn);
            return guard.map(Some);
        }
        let outcome = if self.budget.is_cancelled() {
            Err(Error::cancelled(self.claim.key.name()))
        } else {
            outcome.map(|_| None)
        };
        self.give_up(&outcome);
        outcome
    }

    /// Gives the lease, or `None` when the budget is used up.
    fn run(&mut self) -> Result<Option<Lease>> {
        if self.budget.is_cancelled() {
            return Ok(None);
        }
        if self.renewer.is_none() {
            // Before anything is taken that nobody would renew.
            self.renewer = self.core.renewer(&self.claim.key)?;
        }
        loop {
            let is_last = self.budget.begin();
            if self.budget.is_cancelled() {
                return self.without_lease(None);
            }
            if is_last && self.leaves_question_to_successor() {
                return self.without_lease(None);
            }
            let began = self.core.clock.instant();
            let asked = match self.ask(is_last, began)? {
                ControlFlow::Break(lease) => return Ok(Some(lease)),
                ControlFlow::Continue(asked) => asked,
            };
            let is_over = is_last || self.budget.deadline().is_over();
            if is_over || self.has_failed_for_too_long() {
                return self.without_lease(Some(began));
            }
            match asked {
                Asked::GrantedTooLate => {
                    self.log_outage();
                    continue;
                }
                Asked::Taken {
                    is_queued: true,
                    holder,
                } => self.log_wait(holder),
                Asked::Taken { .. } => {}
                Asked::Failed => self.log_outage(),
            }
            if let Some(lease) = self.wait() {
                return Ok(Some(lease));
            }
        }
    }

    /// Whether the last question isn't asked, because it would end the place in the engine's queue that the next thread
    /// goes on in.
    fn leaves_question_to_successor(&self) -> bool {
        let is_waiting =
            self.contender.state != ContenderState::Unknown && self.contender.failing.is_none();
        is_waiting && self.turn.as_ref().is_some_and(Turn::has_successor)
    }

    fn ask(&mut self, is_last: bool, began: Instant) -> Result<ControlFlow<Lease, Asked>> {
        let deadline = self.question_deadline();
        loop {
            let Contender { owner, wait, .. } = &mut self.contender;
            let request = Request {
                claim: self.claim,
                owner,
                ttl: self.core.options.ttl,
                granted: None,
            };
            let mut pace = (!is_last).then(|| self.budget.pace());
            let answer = match wait.ask(request, pace.as_mut(), &deadline) {
                Ok(answer) => answer,
                Err(failed) => {
                    let asked = self.failed(failed, began, &deadline)?;
                    return Ok(ControlFlow::Continue(asked));
                }
            };
            self.budget.log.answer(self.claim, self.core);
            if let Some(asked) = self.answered(answer, began) {
                return Ok(asked);
            }
        }
    }

    /// `None`: another owner has to ask.
    fn answered(&mut self, answer: Answer, began: Instant) -> Option<ControlFlow<Lease, Asked>> {
        Some(ControlFlow::Continue(match answer {
            Answer::Granted(grant) => {
                let lease = self.lease(grant);
                if lease.is_valid(lease.granted) {
                    return Some(ControlFlow::Break(lease));
                }
                self.contender.state = ContenderState::Unclear;
                self.fail(began, self.too_slow());
                Asked::GrantedTooLate
            }
            Answer::Broken => {
                self.outage = None;
                if self.core.engine.capabilities().is_split {
                    self.leave_at_all();
                }
                let label = self.core.options.label.as_deref();
                let another = Contender::new(&*self.core.engine, self.core.process, label);
                let was_taken = self.contender.was_taken;
                self.contender = Contender {
                    was_taken,
                    ..another
                };
                return None;
            }
            Answer::Taken { is_queued, holder } => {
                self.outage = None;
                self.contender.failing = None;
                self.contender.was_taken = true;
                self.contender.state = if is_queued {
                    ContenderState::Queued
                } else {
                    ContenderState::Unknown
                };
                self.set_taken(true);
                Asked::Taken { is_queued, holder }
            }
        }))
    }

    /// Has a thread release what the owner may have at a server that didn't hear of its end.
    fn leave_at_all(&self) {
        let (claim, owner) = (self.claim.clone(), self.contender.owner.clone());
        let release = DeferredRelease::of_owner(claim, owner, self.core.options.ttl);
        self.core.deferred.leave(release);
    }

    /// Gives the error that no waiting mends.
    fn failed(&mut self, failed: Failed, began: Instant, deadline: &Deadline) -> Result<Asked> {
        let Failed { error, sent } = failed;
        if sent {
            self.contender.state = ContenderState::Unclear;
        }
        self.set_taken(false);
        if !matches!(error, Error::Unavailable { .. }) {
            // The next thread that goes on in this place doesn't know how the lock stands, and asks for itself.
            self.contender.failing = Some(began);
            return Err(error);
        }
        // What the question before was told says more than that there was no time for this answer.
        if self.outage.is_none() || !deadline.is_over() {
            self.fail(began, error);
        }
        Ok(Asked::Failed)
    }

    /// Waits for a grant, or until it is time to ask again.
    fn wait(&mut self) -> Option<Lease> {
        let Contender { owner, wait, .. } = &mut self.contender;
        let request = Request {
            claim: self.claim,
            owner,
            ttl: self.core.options.ttl,
            granted: None,
        };
        let grant = wait.wait(request, &mut self.budget.pace())?;
        let lease = self.lease(grant);
        lease.is_valid(lease.granted).then_some(lease)
    }

    /// What there is to say without a lease, after a last question that began then.
    fn without_lease(&mut self, last_began: Option<Instant>) -> Result<Option<Lease>> {
        let Some(Outage { since, error }) = self.outage.take() else {
            return Ok(None);
        };
        // Also where this call says that the lock is taken: the next thread in this place asks for itself.
        self.contender.failing = Some(since);
        let was_answered = self.contender.was_taken && Some(since) == last_began;
        if was_answered && self.budget.deadline().is_over() {
            // The end of the call cut its last question short; to the one before, the lock was taken.
            return Ok(None);
        }
        Err(error)
    }

    /// By when a question has to be answered.
    fn question_deadline(&self) -> Deadline {
        let deadline = self.budget.deadline().plus(GRACE);
        let Some(since) = self.failing_since() else {
            return deadline;
        };
        let outage_timeout = self.core.options.outage_timeout;
        let left = outage_timeout.saturating_sub(self.passed(since));
        deadline.within(left.max(GRACE))
    }

    fn lease(&self, grant: Grant) -> Lease {
        let claim = match self.contender.wait.shard() {
            Some(shard) => self.claim.of_shard(shard.clone()),
            None => self.claim.clone(),
        };
        let mut lease = Lease::new(claim, self.contender.owner.clone(), grant.token);
        lease.value = grant.value;
        self.core.restart(&mut lease, grant.since);
        lease
    }

    /// An outage begins with the first question that fails, or with the call if that is later.
    fn fail(&mut self, began: Instant, error: Error) {
        let since = self.failing_since().unwrap_or(began);
        self.outage = Some(Outage { since, error });
    }

    fn failing_since(&self) -> Option<Instant> {
        let own = self.outage.as_ref().map(|outage| outage.since);
        let inherited = self.contender.failing;
        own.or_else(|| inherited.map(|at| at.max(self.budget.since())))
    }

    fn has_failed_for_too_long(&self) -> bool {
        let outage_timeout = self.core.options.outage_timeout;
        let outage = self.outage.as_ref();
        outage.is_some_and(|outage| self.passed(outage.since) >= outage_timeout)
    }

    fn passed(&self, since: Instant) -> Duration {
        self.core.clock.instant().saturating_duration_since(since)
    }

    fn too_slow(&self) -> Error {
        let cause = "its answers take longer than the ttl";
        Error::unavailable(
            Some(self.claim.key.name()),
            self.core.engine.endpoint(),
            cause,
        )
    }

    fn log_wait(&mut self, holder: Option<String>) {
        let whose = match &holder {
            Some(holder) => &format!("{holder} holds it"),
            None => "it is taken",
        };
        let deadline = self.question_deadline().within(self.core.options.ttl / 10);
        let (since, log) = (self.budget.since(), &mut self.budget.log);
        log.wait(self.claim, self.core, whose);
        log.still_waits(self.claim, self.core, since, &deadline);
    }

    fn log_outage(&mut self) {
        if let Some(Outage { since, error }) = &self.outage {
            let log = &mut self.budget.log;
            log.outage(self.claim, self.core, *since, error);
        }
    }

    fn set_taken(&self, taken: bool) {
        if let Some(turn) = &self.turn {
            turn.set_taken(taken);
        }
    }

    /// Passes everything on to the next thread of this process that waits. Without one the owner leaves the engine's
    /// queue.
    fn give_up(self, outcome: &Result<Option<LockGuard>>) {
        let has_failed = match outcome {
            Err(Error::Cancelled { .. }) => self.contender.failing.is_some(),
            outcome => outcome.is_err(),
        };
        let leave_by = self.budget.leave_by(has_failed);
        let (core, claim) = (self.core, self.claim);
        let state = TurnState::Resume(Box::new(self.contender), self.renewer);
        let (turn, state) = match self.turn {
            None => (None, state),
            Some(turn) => match turn.pass(state) {
                Ok(()) => return,
                Err((turn, state)) => (Some(turn), state),
            },
        };
        if let TurnState::Resume(contender, renewer) = state {
            release_contender(core, claim, &contender, &leave_by);
            if let Some(renewer) = renewer {
                core.renewers.give_back(renewer);
            }
        }
        drop(turn);
    }
}
