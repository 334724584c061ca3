//! The one loop in which the engine is asked for a lock, by the thread that has its process's turn for the name.
//!
//! It asks, and then waits for whichever comes first: a grant, or the time to ask again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::retry_budget::RetryBudget;
use crate::base::backoff::shortened;
use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::{Error, Result, Whole};
use crate::base::limits::{GRACE, HEARTBEAT_LATENESS, HEARTBEAT_SHARE, RELEASE};
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;
use crate::core::Core;
use crate::engine::{Acquired, Failed, IfTaken, News, Release, Request};
use crate::guard::LockGuard;
use crate::lease::deferred_release::DeferredRelease;
use crate::lease::monitor::Plan;
use crate::lease::renewer::Renewer;
use crate::lease::{Lease, valid_until};
use crate::queue::handoff::{Handoff, Place, Seen, Turn};

/// The thread that asks the engine for a name.
pub(crate) struct Acquirer<'a> {
    core: &'a Arc<Core>,
    claim: &'a Claim,
    budget: RetryBudget,
    /// Its owner stays the same for all attempts, so that one whose answer was lost is found again.
    place: Place,
    /// `None` for a single question beside whoever has the turn.
    turn: Option<Turn>,
    renewer: Option<Renewer>,
    /// Since when, and how, the engine can't be reached.
    failing: Option<(Instant, Error)>,
    /// Who has the lock, as far as the last answer said.
    holder: Option<String>,
}

impl<'a> Acquirer<'a> {
    pub(crate) fn new(
        core: &'a Arc<Core>,
        claim: &'a Claim,
        budget: RetryBudget,
        place: Place,
        turn: Option<Turn>,
        renewer: Option<Renewer>,
    ) -> Self {
        Acquirer {
            core,
            claim,
            budget,
            place,
            turn,
            renewer,
            failing: None,
            holder: None,
        }
    }

    /// Asks until it has the lock or budget has run out.
    pub(crate) fn acquire(mut self) -> Result<Option<LockGuard>> {
        let outcome = self.run();
        self.end(outcome)
    }

    /// Gives the lease, or `None` when budget has run out.
    fn run(&mut self) -> Result<Option<Lease>> {
        if self.renewer.is_none() {
            // Before anything is taken that nobody would renew.
            self.renewer = self
                .core
                .renewer(&self.claim.key, self.place.owner.process())?;
        }
        let last_began = loop {
            let last = self.budget.begin();
            let is_waiting = self.place.known && self.place.failing.is_none();
            if last && is_waiting && self.has_successor() {
                // Who takes the place over needn't lose it.
                break None;
            }
            #[cfg(crosslock_mutant = "new_owner_on_retry")]
            if self.place.known {
                self.place.owner = crate::base::owner::Owner::of(self.place.owner.process());
            }
            self.listen(None);
            let waits = !last && !self.has_to_listen();
            let pause = waits.then(|| self.pause());
            // Read before sending: the server's lease starts no earlier than this.
            let asked = self.core.clock.now();
            let began = Instant::now();
            let bound = match self.ask(pause, began)? {
                Some(Acquired::Granted { token, value }) => {
                    let lease = self.lease(token, asked, value);
                    if lease.is_valid(lease.granted) {
                        return Ok(Some(lease));
                    }
                    // Asked again at once, the same owner gets a new lease.
                    self.place.known = true;
                    self.fail(began, self.too_slow());
                    Duration::ZERO
                }
                Some(Acquired::Taken {
                    remaining,
                    counter,
                    known,
                    length,
                    holder,
                    ..
                }) => {
                    self.holder = holder;
                    let seen = Seen {
                        asked,
                        counter,
                        length,
                    };
                    self.place.seen = Some(seen);
                    self.bound(remaining, known)
                }
                None => Duration::MAX,
            };
            let over = last || self.budget.deadline().is_over();
            if over || self.has_failed_for_too_long() {
                break Some(began);
            }
            if self.place.seen.is_some() && self.start_listening() {
                continue;
            }
            if self.tell() && self.may_block() {
                continue;
            }
            let pause = pause.unwrap_or_else(|| self.pause());
            if let Some(lease) = self.wait(pause.min(bound)) {
                return Ok(Some(lease));
            }
        };
        self.without(last_began)
    }

    /// Tells why the call goes on; says whether it begins to wait for the lock.
    fn tell(&mut self) -> bool {
        let log = &mut self.budget.log;
        if let Some((_, error)) = &self.failing {
            log.outage(error);
            return false;
        }
        let whose = match &self.holder {
            Some(holder) => &format!("{holder} has"),
            None => "is taken",
        };
        log.wait(self.claim, &self.core.engine, whose)
    }

    /// Whether an engine that can may block until the lock is free.
    fn may_block(&self) -> bool {
        self.budget.is_endless() && !self.core.leases_end()
    }

    /// What there is to say without a lease, after a last question that began then.
    fn without(&mut self, last_began: Option<Instant>) -> Result<Option<Lease>> {
        let Some((since, error)) = self.failing.take() else {
            return Ok(None);
        };
        // Also where this call says that the lock is taken: whoever gets the place next asks for itself.
        self.place.failing = Some(since);
        let was_answered = self.place.seen.is_some() && Some(since) == last_began;
        if was_answered && self.budget.deadline().is_over() {
            // The end of the call cut its last question short; to the one before, the lock was taken.
            return Ok(None);
        }
        Err(error)
    }

    /// Without a pause to come it doesn't wait. `None` when the engine can't be reached, which may pass.
    fn ask(&mut self, pause: Option<Duration>, began: Instant) -> Result<Option<Acquired>> {
        let if_taken = match pause {
            Some(pause) => IfTaken::Wait {
                promise: pause + pause / 2 + HEARTBEAT_LATENESS,
                inbox: self.place.grants.as_ref().and_then(|grants| grants.inbox()),
                // Not before it was told that the call waits.
                endless: self.may_block() && self.budget.log.waits(),
            },
            None => IfTaken::Leave,
        };
        let deadline = self.deadline();
        let engine = &self.core.engine;
        let answer = engine.acquire(self.request(), if_taken, &deadline);
        match answer {
            Ok(answer) => {
                self.budget.log.answer(self.claim, &self.core.engine);
                if let Acquired::Taken { stood, .. } = answer {
                    (self.failing, self.place.failing) = (None, None);
                    self.entered(pause.is_some(), stood);
                    self.set_taken(true);
                }
                Ok(Some(answer))
            }
            Err(Failed { error, sent }) => {
                self.place.known |= sent;
                self.set_taken(false);
                if !matches!(error, Error::Unavailable { .. }) {
                    // Whoever gets the place next doesn't know how the lock stands, and asks for itself.
                    self.place.failing = Some(began);
                    return Err(error);
                }
                // What the question before was told says more than that there was no time for this answer.
                if self.failing.is_none() || !deadline.is_over() {
                    self.fail(began, error);
                }
                Ok(None)
            }
        }
    }

    /// The lock was taken: now the place is in the line, or not any more. Who stood there and had to enter anew was
    /// passed over, because nobody heard.
    fn entered(&mut self, waits: bool, stood: bool) {
        if let (true, Some(grants)) = (waits && self.place.stands && !stood, &self.place.grants) {
            grants.distrust();
        }
        (self.place.known, self.place.stands) = (waits, waits);
    }

    fn request(&self) -> Request<'_> {
        Request {
            claim: self.claim,
            owner: &self.place.owner,
            ttl: self.core.options.ttl,
        }
    }

    /// Until when a question may take.
    fn deadline(&self) -> Deadline {
        let deadline = self.budget.deadline().plus(GRACE);
        let Some(since) = self.failing_since() else {
            return deadline;
        };
        let left = self
            .core
            .options
            .unavailable_for
            .saturating_sub(since.elapsed());
        deadline.within(left.max(GRACE))
    }

    /// How long to wait after an answer. Who hears of grants asks seldom, to keep its place and to find what was
    /// missed; who doesn't asks as often as the options say.
    fn pause(&mut self) -> Duration {
        const JITTER: f64 = 0.3;
        let longest = (self.core.options.ttl / 3).max(self.share_of_line());
        let grants = self.place.grants.as_ref();
        let hears = grants.is_some_and(|grants| grants.inbox().is_some());
        if hears && self.failing.is_none() && !self.budget.counts_attempts() {
            shortened(longest, JITTER)
        } else {
            self.budget.pause().min(longest)
        }
    }

    /// How often a waiter of this line may send a heartbeat, so that all of them together don't send too many.
    fn share_of_line(&self) -> Duration {
        let others = self
            .place
            .seen
            .map_or(0, |seen| seen.length.saturating_sub(1));
        HEARTBEAT_SHARE.saturating_mul(others.try_into().unwrap_or(u32::MAX))
    }

    /// How long to wait at most, given who holds the lock.
    fn bound(&mut self, remaining: Option<Duration>, known: bool) -> Duration {
        // The server's clock counts whole milliseconds.
        let left = remaining.map_or(Duration::MAX, |left| left + Duration::from_millis(1));
        if known {
            // The first of a line that asks then finds the lease over, for all of them.
            left.saturating_add(self.share_of_line().mul_f64(fastrand::f64()))
        } else {
            left.min(self.budget.pause())
        }
    }

    /// Waits for a grant, or until it is time to ask again.
    fn wait(&self, timeout: Duration) -> Option<Lease> {
        let timeout = timeout.min(self.budget.deadline().remaining());
        let Some(grants) = &self.place.grants else {
            self.core.engine.wait(self.request(), timeout);
            return None;
        };
        match grants.wait(timeout)? {
            News::Granted(token) => self.granted(token),
            News::Ask => None,
        }
    }

    /// The lease of a grant that was heard of: it began after the last answer, so it lasts for a ttl from that
    /// question at least. One that is from before, or was long on the way, is left to the next question, which
    /// finds whether it is still there.
    fn granted(&self, token: Token) -> Option<Lease> {
        if self.claim.has_many() || self.claim.valued {
            // It was one of them, or its value is still to be had: the next question brings the rest.
            return None;
        }
        let seen = self.place.seen?;
        let lease = self.lease(token, seen.asked, None);
        let is_fresh = lease.remaining(lease.granted) >= self.core.options.ttl / 2;
        let is_new = cfg!(crosslock_mutant = "grant_unchecked") || token.number > seen.counter;
        (is_new && is_fresh).then_some(lease)
    }

    fn lease(&self, token: Token, asked: BootInstant, value: Option<Stored>) -> Lease {
        #[cfg(crosslock_mutant = "validity_from_reply")]
        let asked = asked.max(self.core.clock.now());
        let (options, now) = (&self.core.options, self.core.clock.now());
        Lease {
            claim: self.claim.clone(),
            owner: self.place.owner.clone(),
            token,
            valid_until: self.core.lease_end(valid_until(asked, options.ttl)),
            due: Plan::of(options).due(asked),
            granted: now,
            held_since: now,
            hand_overs: 0,
            kept_until: BootInstant::START,
            panicked: false,
            value,
        }
    }

    fn listen(&mut self, start: Option<&Deadline>) {
        if self.place.grants.is_none() {
            let owner = &self.place.owner;
            self.place.grants = self.core.engine.listen(&self.claim.key, owner, start);
            self.place.listened |= self.place.grants.is_some();
        }
    }

    /// Whether the engine's line isn't to be entered yet. Who counts attempts asks often enough.
    fn has_to_listen(&self) -> bool {
        let may_listen = self.core.engine.has_line() && !self.budget.counts_attempts();
        may_listen && !self.place.listened
    }

    /// Sees to it that a grant will be heard, before the engine's line is entered. Says whether that was to be
    /// done: then the lock may have been released meanwhile.
    fn start_listening(&mut self) -> bool {
        if !self.has_to_listen() {
            return false;
        }
        let deadline = self.budget.deadline().clone();
        self.listen(Some(&deadline));
        self.place.listened = true;
        true
    }

    /// An outage begins with the first attempt that fails, or with the call if that is later.
    fn fail(&mut self, began: Instant, error: Error) {
        self.failing = Some((self.failing_since().unwrap_or(began), error));
    }

    fn failing_since(&self) -> Option<Instant> {
        let own = self.failing.as_ref().map(|(since, _)| *since);
        let inherited = self.place.failing.map(|at| at.max(self.budget.since()));
        own.or(inherited)
    }

    fn too_slow(&self) -> Error {
        let cause = "its answers take as long as the ttl";
        Error::unavailable(Some(self.claim.key.name()), self.core.engine.place(), cause)
    }

    fn has_failed_for_too_long(&self) -> bool {
        let unavailable_for = self.core.options.unavailable_for;
        self.failing
            .as_ref()
            .is_some_and(|(since, _)| since.elapsed() >= unavailable_for)
    }

    fn has_successor(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::has_successor)
    }

    fn set_taken(&self, taken: bool) {
        if let Some(turn) = &self.turn {
            turn.set_taken(taken);
        }
    }

    /// Makes the guard, or gives up: then the place goes to the next thread of this process that waits.
    fn end(self, outcome: Result<Option<Lease>>) -> Result<Option<LockGuard>> {
        if let Ok(Some(lease)) = outcome {
            self.set_taken(true);
            let guard = LockGuard::new(self.core.clone(), lease, self.renewer, self.turn);
            return Ok(Some(guard));
        }
        // A timed call has no time for an engine that doesn't answer.
        let leave_by = match (self.budget.is_timed(), &outcome) {
            (false, _) => Deadline::after(RELEASE),
            (true, Ok(_)) => self.budget.deadline().plus(GRACE),
            (true, Err(_)) => Deadline::after(Duration::ZERO),
        };
        let (core, claim) = (self.core, self.claim);
        let passed = match self.turn {
            Some(turn) => turn
                .pass(Handoff::Resume(Box::new(self.place), self.renewer))
                .map_err(|(turn, word)| (Some(turn), word)),
            None => Err((None, Handoff::Resume(Box::new(self.place), self.renewer))),
        };
        if let Err((turn, Handoff::Resume(place, renewer))) = passed {
            give_up(core, claim, &place, &leave_by);
            if let Some(renewer) = renewer {
                let process = place.owner.process();
                core.renewers.get(process).give_back(renewer);
            }
            drop(turn);
        }
        outcome.map(|_| None)
    }
}

/// Leaves the engine's line, and releases what an attempt may have taken: by `deadline`, or else a thread does it.
/// An attempt that is still on its way to the server, and takes the lock after this, leaves it taken for its ttl.
fn give_up(core: &Core, claim: &Claim, place: &Place, deadline: &Deadline) {
    let ttl = core.options.ttl;
    let request = Request {
        claim,
        owner: &place.owner,
        ttl,
    };
    if !place.known {
        return;
    }
    let release = || core.engine.release(request, Release::UNKNOWN, deadline);
    let is_left = deadline.is_over()
        || match release() {
            Ok(_) => false,
            Err(e) if e.may_pass() => true,
            Err(e) => {
                log::warn!("what was given up is left to its ttl: {}", Whole(&e));
                false
            }
        };
    if is_left {
        core.deferred
            .get(place.owner.process())
            .leave(DeferredRelease {
                claim: claim.clone(),
                owner: place.owner.clone(),
                ttl,
                ending: Ending::Unknown,
                kept_until: BootInstant::START,
            });
    }
}
