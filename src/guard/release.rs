//! How a guard ends: its lease is handed over to the next thread of the process, or released; by a call, by a drop of
//! its holder or of a panic, or not at all in a child that inherited it. And what the observer is told.
//!
//! | the guard has | another thread waits, and may have the lease | nobody does, or it may not |
//! |---|---|---|
//! | no value to store | it is handed over: no I/O | it is released |
//! | a value | it is stored, then the lease is handed over | it is released, and the value stored with it |
//!
//! A lease that can't be handed over after all, because the other thread has left, is released. A release that fails is
//! left to a thread of the locker.

use std::{sync::Arc, time::Duration};

use super::LockGuard;
use crate::base::{
    BootInstant, Deadline, Error, LostReason, Owner, Result, limits::RELEASE, sys::time,
};
#[cfg(feature = "value")]
use crate::base::{ErrorChain, limits::GRACE};
use crate::engine::{Change, Done, Gone, Grant, Outcome, Release, Request};
use crate::lease::{Lease, deferred_release::DeferredRelease};
use crate::queue::{Turn, TurnState};

/// What to do when a release isn't answered.
const UNRELEASED: &str = "it may not be released yet; the release is retried in the background, and the lock is free \
                          after its ttl at the latest";
/// What to do when it was released by the first copy of a release, or lost before.
const UNCLEAR: &str = "it is released; if the server lost its data before, another holder may have held it at the \
                       same time";
/// What to do when a value was stored with it.
pub(super) const UNSTORED: &str =
    "its value may not have been stored; lock it again and read the value";

/// What is known of a lease that was valid when its release began.
///
/// | answer | valid when it came | without a value | with one |
/// |---|---|---|---|
/// | `Done` | or not | `Ours`: the server had kept it | the same |
/// | `NotOwner` | or not | `Lost` | the same |
/// | `Repeated` | yes | `Ours`: nobody else can have ended it | the same |
/// | `Unclear` | yes | an error: a server that lost its data may have ended it before | an error: it may be stored or not |
/// | `Repeated`, `Unclear` | no | `Lost`: it may have run out, and another may have had it | an error: it may be stored or not |
/// | an error | or not | an error: it may be released or not | the same |
pub(super) enum Ended {
    /// It was the caller's to the end. With the next task, if that was asked for and one was ready.
    Ours(Option<Box<Grant>>),
    Lost(LostReason),
}

/// Which thread of this process has a lease next.
#[derive(Clone, Copy)]
enum Next {
    /// Whichever comes or looks first: one that runs needn't wait for one that sleeps.
    Any,
    /// The first that waits.
    First,
}

impl LockGuard {
    /// Keeps the lock taken for at least `least` since this guard got it, even if the guard is released earlier.
    ///
    /// After an early release nobody holds the lock, and nobody gets it until that time. Then waiters get it in their
    /// order, as after any release, and [`was_abandoned`](Self::was_abandoned) is false. So a job that all machines
    /// start at about the same time runs once, however short it is. Permits of a semaphore limit a rate in this way,
    /// and readers keep writers out.
    ///
    /// The call does no I/O: the release tells the engine. The time counts from when this process knew that it had
    /// the lock. After the release the server's clock measures it; on `file:` and `memory:` the host's, which runs on
    /// during suspend. More than 100 years count as 100. Another call replaces the time. A guard that is held for
    /// longer is released as any other. [`downgrade`](Self::downgrade) passes the time on to the reading guard.
    ///
    /// What cuts the time short:
    ///
    /// - A panic that drops the guard frees the lock at once, so that another holder can repair the work.
    /// - If the process dies, or the release doesn't reach the server, the lock is free when the lease ends.
    /// - A deleted key or file, or a server that loses its data, frees the lock. On `file:` a reboot does.
    ///
    /// A host without `/proc/sys/kernel/random/boot_id` measures by its wall clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("least-example")?;
    /// guard.at_least_for(Duration::from_secs(60));
    /// guard.unlock()?;
    /// assert!(locker.try_lock("least-example")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn at_least_for(&self, least: Duration) {
        // In a child that inherited this guard nothing may be locked: its other threads stayed in the parent.
        if !self.is_inherited() {
            self.used_here();
            self.monitor.keep_for(least);
        }
    }

    /// Releases the lock and returns what went wrong: one round trip, at most 500 ms.
    ///
    /// If another thread of this process waits, and [`hand_over`](crate::LockerBuilder::hand_over) isn't over, that
    /// thread gets the lease without I/O. Then a loss that this process didn't know of isn't reported.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] when the lock wasn't this guard's any more. Another may have held it meanwhile, and keeps it.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when it isn't known
    ///   whether the lock was released. A thread of the locker goes on trying, and the lease ends with its ttl at the
    ///   latest. The caller has nothing to do, but others may have to wait for a ttl.
    ///
    /// If the answer is lost, the release is sent again. When others have had the lock by then, it isn't known whether
    /// the first copy released it, or a server that lost its data had let them in before: that is
    /// [`Error::Unavailable`], or [`Error::Lost`] if the lease has run out meanwhile. On etcd and ZooKeeper, which lose
    /// no data, a lease that is still valid counts as released.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("unlock-example")?;
    /// guard.unlock()?; // `drop(guard)` would only log an error
    /// # Ok(())
    /// # }
    /// ```
    pub fn unlock(mut self) -> Result<()> {
        self.release_storing(None)
    }

    /// Releases it, and stores the value if it is still this guard's.
    pub(crate) fn release_storing(&mut self, value: Option<Arc<[u8]>>) -> Result<()> {
        if self.is_inherited() {
            return Err(self.lost_error());
        }
        self.release(value, &Deadline::NEVER, false)
    }

    /// The same for a task, and takes the next one for that owner, if one is ready and the engine can.
    #[cfg(feature = "delay")]
    pub(crate) fn release_taking(
        &mut self,
        value: Arc<[u8]>,
        next: &Owner,
    ) -> Result<Option<Box<Grant>>> {
        if self.is_inherited() {
            return Err(self.lost_error());
        }
        self.end(Some(value), &Deadline::NEVER, false, Some(next))
    }

    /// Releases it by a deadline, or has a thread do it.
    #[cfg(feature = "value")]
    pub(crate) fn release_by(&mut self, deadline: &Deadline) {
        if let Err(e) = self.release(None, &deadline.plus(GRACE), false) {
            log::warn!("can't release a lock in time: {}", ErrorChain(&e));
        }
    }

    /// In the process that took the lock. The value is stored if the lock is still this guard's.
    pub(super) fn release(
        &mut self,
        value: Option<Arc<[u8]>>,
        by: &Deadline,
        panicked: bool,
    ) -> Result<()> {
        self.end(value, by, panicked, None).map(drop)
    }

    fn end(
        &mut self,
        value: Option<Arc<[u8]>>,
        by: &Deadline,
        panicked: bool,
        next: Option<&Owner>,
    ) -> Result<Option<Box<Grant>>> {
        let now = self.core.clock.now();
        let was_held = !self.monitor.remaining_at(now).is_zero();
        let Some((mut lease, mut turn)) = self.monitor.end() else {
            // Its locker was closed, and has released it.
            return Err(self.lost_error());
        };
        self.note_end(&lease);
        lease.panicked = panicked;
        lease.is_token_used = *self.is_token_used.get_mut();
        let value = value.filter(|_| was_held);
        let deadline = || by.within(RELEASE);
        // Asked once: a thread that comes later is handed nothing that isn't stored.
        let ended = match (self.next_holder(&lease, turn.as_ref(), now), value) {
            (None, value) => self.send_release(lease, value.as_deref(), next, &deadline()),
            (Some(next), None) => self.hand_over_or_release(lease, &mut turn, next, deadline),
            (Some(_), Some(value)) => {
                self.store_and_hand_over(lease, &mut turn, value, &deadline())
            }
        };
        self.leave_registry();
        self.tell_end(ended.as_ref().ok());
        self.return_renewer();
        // The next thread of this process asks for itself, behind the other processes.
        drop(turn);
        if !was_held {
            // What was lost stays lost, whatever became of it in the end.
            return Err(self.lost_error());
        }
        match ended? {
            Ended::Ours(next) => Ok(next),
            Ended::Lost(reason) => Err(Error::lost(self.name(), reason)),
        }
    }

    /// Which thread of this process may have the lease next, if one may. A lease that was lost has no turn any more.
    fn next_holder(&self, lease: &Lease, turn: Option<&Turn>, now: BootInstant) -> Option<Next> {
        let turn = turn?;
        let mut waiting = turn.successors();
        if waiting == 0 && lease.was_handed_over() {
            // The thread before may be about to come back, and have been interrupted by this one.
            time::yield_now();
            waiting = turn.successors();
        }
        if waiting == 0 {
            return None;
        }
        let (core, options) = (&self.core, &self.core.options);
        let most = core.engine.capabilities().hand_overs;
        if !lease.may_be_handed_over(now, options.ttl, options.hand_over, most) {
            return None;
        }
        // Where only a test moves the clock, no turn would ever come by it.
        let is_fair = core.clock.is_moved() || lease.is_fair_turn_due(now, waiting);
        Some(if is_fair { Next::First } else { Next::Any })
    }

    fn hand_over_or_release(
        &mut self,
        lease: Lease,
        turn: &mut Option<Turn>,
        next: Next,
        deadline: impl FnOnce() -> Deadline,
    ) -> Result<Ended> {
        match self.hand_over(lease, turn, next) {
            None => Ok(Ended::Ours(None)),
            Some(lease) => self.send_release(*lease, None, None, &deadline()),
        }
    }

    /// The next thread works on the value, and this one is told that it is stored: so it is, whatever becomes of the
    /// lease.
    fn store_and_hand_over(
        &mut self,
        mut lease: Lease,
        turn: &mut Option<Turn>,
        value: Arc<[u8]>,
        deadline: &Deadline,
    ) -> Result<Ended> {
        let stored = match self.store(&lease, &value, deadline) {
            Ok(stored) => stored,
            Err(e) => {
                self.defer(DeferredRelease::of(lease, self.core.options.ttl));
                return Err(e);
            }
        };
        lease.value = Some(Some(value));
        let released = match stored {
            Outcome::Gone(_) => {
                let reason = self.why_gone(&lease, deadline);
                self.core.engine.abandon(&lease.owner);
                return Ok(Ended::Lost(reason));
            }
            // Storing it took its time.
            Outcome::Done(Done {
                is_repeated: false, ..
            }) => match self.next_holder(&lease, turn.as_ref(), self.core.clock.now()) {
                Some(next) => self.hand_over_or_release(lease, turn, next, || deadline.clone()),
                None => self.send_release(lease, None, None, deadline),
            },
            // A late copy of the store must not undo what the next thread stores under the same owner.
            Outcome::Done(_) => self.send_release(lease, None, None, deadline),
        };
        if let Err(e) = released {
            log::debug!("the value is stored, and the release is retried in the background: {e}");
        }
        Ok(Ended::Ours(None))
    }

    /// Why a lease isn't the owner's any more, where the answer to a command didn't tell.
    pub(super) fn why_gone(&self, lease: &Lease, deadline: &Deadline) -> LostReason {
        let request = self.request(lease);
        match self.core.engine.change(request, Change::Verify, deadline) {
            Ok(Outcome::Gone(gone)) => gone.reason(),
            _ => LostReason::NotOwner,
        }
    }

    fn store(&self, lease: &Lease, value: &[u8], deadline: &Deadline) -> Result<Outcome> {
        let (engine, request) = (&self.core.engine, self.request(lease));
        let stored = engine.change(request, Change::Store(value), deadline);
        stored.map_err(|e| e.advising(UNSTORED))
    }

    /// Gives the lease to another thread of this process, with the turn; or back, if none waits any more.
    fn hand_over(
        &mut self,
        lease: Lease,
        turn: &mut Option<Turn>,
        next: Next,
    ) -> Option<Box<Lease>> {
        let Some(own) = turn.take() else {
            return Some(Box::new(lease));
        };
        // Before the next thread tells that it has the lock.
        self.tell_released();
        let state = TurnState::Lease(Box::new(lease), self.renewer.take());
        let passed = match next {
            Next::Any => own.offer(state),
            Next::First => own.pass(state),
        };
        match passed {
            // It comes back as it was given.
            Err((own, TurnState::Lease(lease, renewer))) => {
                (*turn, self.renewer) = (Some(own), renewer);
                Some(lease)
            }
            _ => None,
        }
    }

    /// A lease that has run out here may still be there: it is released so that nobody waits for it.
    fn send_release(
        &self,
        lease: Lease,
        value: Option<&[u8]>,
        next: Option<&Owner>,
        deadline: &Deadline,
    ) -> Result<Ended> {
        let gone = match self.monitor.lost_reason() {
            Some(reason @ (LostReason::NotOwner | LostReason::Broken)) => Some(reason),
            _ => None,
        };
        if let Some(reason) = gone.filter(|_| !self.core.is_split(&lease)) {
            return Ok(Ended::Lost(reason));
        }
        let release = Release {
            ending: lease.ending(),
            keep: self.keep(&lease),
            value,
            next,
        };
        // Read before sending: no lease of the next task starts earlier.
        let asked = next.map_or(BootInstant::START, |_| self.core.clock.now());
        let request = self.request(&lease);
        let released = self
            .core
            .engine
            .change(request, Change::Release(release), deadline);
        let valid_until = lease.valid_until;
        let (may_pass, is_rest) = match &released {
            Ok(Outcome::Done(done)) => (false, done.is_partial),
            Ok(Outcome::Gone(_)) => (false, false),
            Err(e) => (e.may_pass(), false),
        };
        if may_pass || is_rest {
            let release = DeferredRelease::of(lease, self.core.options.ttl);
            self.defer(DeferredRelease { is_rest, ..release });
        }
        let advice = value.map_or(UNRELEASED, |_| UNSTORED);
        match released.map_err(|e| e.advising(advice))? {
            Outcome::Done(done) => Ok(Ended::Ours(done.token.map(|token| {
                Box::new(Grant {
                    token,
                    value: done.value,
                    since: asked,
                })
            }))),
            Outcome::Gone(gone) => self.release_found(gone, valid_until, value.is_some()),
        }
    }

    /// How the guard ends when its release didn't find the lease.
    fn release_found(
        &self,
        gone: Gone,
        valid_until: BootInstant,
        has_value: bool,
    ) -> Result<Ended> {
        let is_valid = || self.core.clock.now() < valid_until;
        match gone {
            Gone::NotOwner | Gone::Broken => Ok(Ended::Lost(gone.reason())),
            Gone::Repeated if is_valid() => Ok(Ended::Ours(None)),
            Gone::Repeated | Gone::Unclear if !has_value && !is_valid() => {
                Ok(Ended::Lost(LostReason::Expired))
            }
            Gone::Repeated | Gone::Unclear => {
                let (cause, advice) = match has_value {
                    true => ("no answer shows whether the value was stored", UNSTORED),
                    false => ("no answer shows whether the lock was released", UNCLEAR),
                };
                let endpoint = self.core.engine.endpoint();
                Err(Error::unavailable(Some(self.name()), endpoint, cause).advising(advice))
            }
        }
    }

    /// For how much longer the lock stays taken.
    fn keep(&self, lease: &Lease) -> Duration {
        match lease.kept_until() {
            // Almost always: no look at the clock.
            BootInstant::START => Duration::ZERO,
            until => until.since(self.core.clock.now()),
        }
    }

    pub(super) fn request<'a>(&self, lease: &'a Lease) -> Request<'a> {
        Request {
            claim: &lease.claim,
            owner: &lease.owner,
            ttl: self.core.options.ttl,
            granted: Some(lease.granted_token()),
        }
    }

    /// Leaves a release to a thread that goes on trying.
    pub(super) fn defer(&self, release: DeferredRelease) {
        self.core.deferred.leave(release);
    }

    pub(super) fn return_renewer(&mut self) {
        if let Some(renewer) = self.renewer.take() {
            self.core.renewers.give_back(renewer);
        }
    }
}
