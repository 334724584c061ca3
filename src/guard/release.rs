//! How a guard ends: its lease is handed over, released, or turned into another.

use std::sync::Arc;
use std::time::Duration;

use super::LockGuard;
use crate::base::clock::{BootInstant, Deadline};
#[cfg(feature = "value")]
use crate::base::error::Whole;
use crate::base::error::{Error, LostReason, Result};
#[cfg(feature = "value")]
use crate::base::limits::GRACE;
use crate::base::limits::RELEASE;
use crate::base::token::Ending;
use crate::engine::{Release, Released, Request, StoreAnswer};
use crate::lease::Lease;
use crate::lease::deferred_release::DeferredRelease;
use crate::queue::handoff::{Handoff, Turn};

/// What to do when a release isn't answered.
const UNRELEASED: &str = "it isn't known whether it was released: that is tried again in the background, and the lock is free after its ttl at the latest";
const UNSTORED: &str = "whether its value was stored isn't known: lock it again and read it";

/// What is known of a lease that was valid when its release began.
///
/// | answer | valid when it came | without a value | with one |
/// |---|---|---|---|
/// | `Done` | or not | `Ours`: the server had kept it | the same |
/// | `NotOwner` | or not | `Lost` | the same |
/// | `Unclear` | yes | `Ours`: nobody else can have ended it | the same |
/// | `Unclear` | no | `Lost`: it may have run out, and another may have had it | an error: it may be stored or not |
/// | an error | or not | an error: it may be released or not | the same |
enum Ended {
    /// It was the caller's to the end.
    Ours,
    Lost(LostReason),
}

impl LockGuard {
    /// Releases it, and stores the value if it is still this guard's.
    pub(crate) fn end(&mut self, value: Option<Arc<[u8]>>) -> Result<()> {
        if self.is_inherited() {
            return Err(self.lost_error());
        }
        self.release(value, &Deadline::NEVER, false)
    }

    /// Releases it by a deadline, or has a thread do it.
    #[cfg(feature = "value")]
    pub(crate) fn end_by(&mut self, deadline: &Deadline) {
        if let Err(e) = self.release(None, &deadline.plus(GRACE), false) {
            log::warn!("not released in time: {}", Whole(&e));
        }
    }

    /// Goes on reading, and stores the value if the lock is still this guard's.
    pub(crate) fn read_on(&mut self, value: Option<Arc<[u8]>>) -> Result<LockGuard> {
        let engine = self.core.engine.clone();
        let sharing = engine.sharing()?;
        if !self.claim.is_exclusive() || self.claim.has_many() {
            let what = "to downgrade what isn't one exclusive lock".to_owned();
            return Err(Error::Unsupported { what });
        }
        self.check()?;
        let Some((mut lease, turn)) = self.held.end() else {
            return Err(self.lost_error());
        };
        let (last_used, deadline) = (lease.token.number, Deadline::after(RELEASE));
        // Read before sending: the server's lease starts no earlier than this.
        let asked = self.core.clock.now();
        let request = self.request(&lease);
        let downgraded = sharing.downgrade(request, last_used, value.as_deref(), &deadline);
        let claim = self.claim.shared();
        match downgraded {
            Ok(Some(token)) => {
                (lease.claim, lease.token) = (claim, token);
                lease.value = value.map(Some).or(lease.value);
                self.core.restart(&mut lease, asked);
                // The others of this process ask for themselves.
                drop(turn);
                let renewer = self.renewer.take();
                Ok(LockGuard::new(self.core.clone(), lease, renewer, None))
            }
            Ok(None) => {
                self.give_back();
                Err(self.lost_error())
            }
            Err(e) => {
                self.give_back();
                // It is held either way, or not at all.
                let (owner, ttl) = (lease.owner.clone(), self.core.options.ttl);
                let kept_until = lease.kept_until;
                self.leave(lease);
                self.core.deferred.get(self.process).leave(DeferredRelease {
                    claim,
                    owner,
                    ttl,
                    ending: Ending::Clean { last_used },
                    kept_until,
                });
                Err(e)
            }
        }
    }

    /// In the process that took the lock. The value is stored if the lock is still this guard's.
    pub(crate) fn release(
        &mut self,
        value: Option<Arc<[u8]>>,
        by: &Deadline,
        panicked: bool,
    ) -> Result<()> {
        let was_held = !self.held.remaining().is_zero();
        let Some((mut lease, mut turn)) = self.held.end() else {
            return Ok(());
        };
        lease.panicked = panicked;
        let mut value = value.filter(|_| was_held);
        let deadline = by.within(RELEASE);
        // Asked once: a thread that comes later is handed nothing that isn't stored.
        let may_hand_over = self.has_next(&lease, turn.as_ref());
        // The next thread works on it, and this one is told that it is stored: so it is.
        let to_next = value.take_if(|_| may_hand_over);
        let stored = to_next.map(|value| self.store(&mut lease, value, &deadline));
        let is_stored = matches!(&stored, Some(Ok(kept)) if *kept != StoreAnswer::NotOwner);
        let released = match stored {
            Some(Ok(StoreAnswer::NotOwner)) => Ok(Ended::Lost(LostReason::NotOwner)),
            Some(Ok(StoreAnswer::DoneLate)) => self.release_lease(lease, None, &deadline),
            Some(Err(e)) => {
                self.leave(lease);
                Err(e)
            }
            _ if may_hand_over => match self.hand_over(lease, turn) {
                None => return Ok(()),
                Some((lease, back)) => {
                    turn = back;
                    self.release_lease(lease, None, &deadline)
                }
            },
            _ => self.release_lease(lease, value.as_deref(), &deadline),
        };
        self.give_back();
        // The next thread of this process asks for itself, behind the other processes.
        drop(turn);
        match released {
            // What was stored stays so, whatever became of the lease.
            _ if is_stored => Ok(()),
            // What was lost stays lost, whatever became of it in the end.
            _ if !was_held => Err(self.lost_error()),
            Ok(Ended::Ours) => Ok(()),
            Ok(Ended::Lost(reason)) => Err(Error::lost(self.name(), reason)),
            Err(e) => Err(e),
        }
    }

    /// Whether another thread of this process may have the lease next. A lease that was lost has no turn any more.
    fn has_next(&self, lease: &Lease, turn: Option<&Turn>) -> bool {
        let (now, options) = (self.core.clock.now(), &self.core.options);
        let most = self.core.engine.capabilities().hand_overs;
        let may = lease.may_be_handed_over(now, options.ttl, options.hand_over, most);
        may && turn.is_some_and(Turn::has_successor)
    }

    /// Gives the lease to the next thread of this process that waits; or back, if there is none or its time is up.
    fn hand_over(&mut self, lease: Lease, turn: Option<Turn>) -> Option<(Lease, Option<Turn>)> {
        let may = self.has_next(&lease, turn.as_ref());
        let turn = match turn {
            Some(turn) if may => turn,
            turn => return Some((lease, turn)),
        };
        let word = Handoff::Lease(Box::new(lease), self.renewer.take());
        let (turn, word) = turn.pass(word).err()?;
        // It comes back as it was given.
        let Handoff::Lease(lease, renewer) = word else {
            return None;
        };
        self.renewer = renewer;
        Some((*lease, Some(turn)))
    }

    fn store(
        &self,
        lease: &mut Lease,
        value: Arc<[u8]>,
        deadline: &Deadline,
    ) -> Result<StoreAnswer> {
        let values = self.core.engine.values()?;
        let stored = values.store(self.request(lease), &value, deadline);
        let stored = stored.map_err(|e| e.advising(UNSTORED))?;
        lease.value = Some(Some(value));
        Ok(stored)
    }

    /// A lease that has run out here may still be there: it is released so that nobody waits for it.
    fn release_lease(
        &self,
        lease: Lease,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Ended> {
        let is_gone = self.held.lost_reason() == Some(LostReason::NotOwner);
        // Of several the others may still be there.
        if is_gone && !lease.claim.has_many() {
            return Ok(Ended::Lost(LostReason::NotOwner));
        }
        let release = Release {
            ending: lease.ending(),
            keep: self.keep(&lease),
            value,
        };
        let request = self.request(&lease);
        let released = self.core.engine.release(request, release, deadline);
        let is_valid = lease.is_valid(self.core.clock.now());
        if released.as_ref().is_err_and(Error::may_pass) {
            self.leave(lease);
        }
        let advice = value.map_or(UNRELEASED, |_| UNSTORED);
        match released.map_err(|e| e.advising(advice))? {
            Released::Done => Ok(Ended::Ours),
            Released::NotOwner => Ok(Ended::Lost(LostReason::NotOwner)),
            Released::Unclear if is_valid => Ok(Ended::Ours),
            Released::Unclear if value.is_none() => Ok(Ended::Lost(LostReason::Expired)),
            Released::Unclear => {
                let cause = "the answer was lost that says whether its value was stored";
                let place = self.core.engine.place();
                Err(Error::unavailable(Some(self.name()), place, cause).advising(advice))
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

    fn request<'a>(&self, lease: &'a Lease) -> Request<'a> {
        Request {
            claim: &lease.claim,
            owner: &lease.owner,
            ttl: self.core.options.ttl,
        }
    }

    /// Leaves the release to a thread that goes on trying.
    fn leave(&self, lease: Lease) {
        let deferred = self.core.deferred.get(self.process);
        deferred.leave(DeferredRelease::of(lease, self.core.options.ttl));
    }

    fn give_back(&mut self) {
        if let Some(renewer) = self.renewer.take() {
            self.core.renewers.get(self.process).give_back(renewer);
        }
    }
}
