//! One name: its holders, and its queue. The rules are those of `lua/lib/hand_off.lua`.
//!
//! When a holder leaves, or is found to be gone, the name is granted to the next waiter: its place among the holders is
//! kept until the time of its next heartbeat, with which it gets its lease. So no waiter in the queue could be let in
//! now, unless the time of a holder is over; the next owner that asks finds that.

mod operations;
mod written;

use std::time::Duration;

use super::counter::Counter;
use super::holders::{Holder, Holders, Who, used};
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::clock::BootInstant;
use crate::base::limits::ABANDONMENT;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::engine::heartbeat::IfTaken;
use crate::engine::{Release, Request};

/// One name.
#[derive(Debug, Default)]
pub(super) struct NameState {
    holders: Holders,
    /// When an exclusive lease ran out, until the next exclusive holder has been told.
    abandoned: Option<BootInstant>,
    /// In the order of arrival. There are two queues in it: readers, who are let in together, and the others, one after
    /// the other.
    queue: Vec<Waiter>,
}

/// An owner in the queue.
#[derive(Debug)]
struct Waiter {
    owner: Owner,
    mode: Mode,
    /// Whether it goes before readers.
    goes_first: bool,
    /// Whether it wants other names, too.
    wants_more: bool,
    /// When it came.
    since: BootInstant,
    /// Its next heartbeat is due by then.
    overdue: BootInstant,
}

impl NameState {
    /// Whether the owner may have a lease now, or has one. Holders that are gone must have been found before.
    pub(super) fn is_turn_of(&self, request: Request<'_>) -> bool {
        let Claim { mode, prefer, .. } = *request.claim;
        let passes = mode == Mode::Shared && prefer == Prefer::Readers;
        self.holders.has(request.owner, mode)
            || (self.holders.fits(mode) && (passes || self.first(false).is_none()))
    }

    /// Gives the owner, whose turn it is, its lease; the same one, if it has it.
    pub(super) fn enter(
        &mut self,
        request: Request<'_>,
        now: BootInstant,
        counter: &mut Counter,
    ) -> Token {
        let (owner, mode) = (request.owner, request.claim.mode);
        let had = self.holders.get_mut(owner, mode);
        let had = had.and_then(|one| Some((one.token()?, one.since)));
        let (token, since) = had.unwrap_or_else(|| (counter.next(self.abandoned.is_some()), now));
        if mode == Mode::Exclusive {
            // Readers are told as well, but it stays until a holder was told that may mend it.
            self.abandoned = None;
        }
        let who = Who::Owner(owner.clone(), token);
        let holder = Holder::new(who, mode, since, now.plus(request.ttl));
        match self.holders.get_mut(owner, mode) {
            Some(place) => *place = holder,
            None => {
                self.leave(owner);
                self.holders.add(mode, holder);
            }
        }
        token
    }

    /// Whether the owner is among the holders, or in the queue.
    pub(super) fn knows(&self, request: Request<'_>) -> bool {
        self.holders.has(request.owner, request.claim.mode) || self.place(request.owner).is_some()
    }

    /// Puts an owner that can't have a lease now into the queue, or keeps its place, or takes it out.
    pub(super) fn enter_queue(
        &mut self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        now: BootInstant,
        granted: &mut Vec<Owner>,
    ) {
        let IfTaken::Wait {
            heartbeat_within, ..
        } = if_taken
        else {
            self.release(request, Release::UNKNOWN, now, granted);
            return;
        };
        let (claim, overdue) = (request.claim, now.plus(heartbeat_within));
        if let Some(holder) = self.holders.get_mut(request.owner, claim.mode) {
            holder.until = overdue;
        } else if let Some(place) = self.place(request.owner) {
            self.queue[place].overdue = overdue;
        } else {
            self.queue.push(Waiter {
                owner: request.owner.clone(),
                mode: claim.mode,
                goes_first: claim.mode == Mode::Exclusive && claim.prefer == Prefer::Writers,
                wants_more: claim.has_many(),
                since: now,
                overdue,
            });
            // An owner of several names may find this one free.
            self.let_in(false, now, None, granted);
        }
    }

    /// Ends the lease, if it is the owner's, and says whether it was. An owner that doesn't know what it has leaves the
    /// queue, too.
    pub(super) fn release(
        &mut self,
        request: Request<'_>,
        Release { ending, keep, .. }: Release<'_>,
        now: BootInstant,
        granted: &mut Vec<Owner>,
    ) -> bool {
        let (owner, mode) = (request.owner, request.claim.mode);
        self.tidy(now, None, granted);
        if ending == Ending::Unknown {
            self.leave(owner);
        }
        let kept = match keep {
            Duration::ZERO => None,
            keep => self.holders.keep(owner, mode, now.plus(keep)),
        };
        let token = if kept.is_some() {
            kept
        } else {
            let ended = self.holders.remove(owner, mode);
            self.let_in(
                ended.is_some() && mode == Mode::Exclusive,
                now,
                None,
                granted,
            );
            ended.and_then(|holder| holder.token())
        };
        let is_abandoned = token.is_some_and(|token| match ending {
            // Nobody was told: the next holder finds it as this one did.
            Ending::Unknown => token.abandoned,
            Ending::Clean { .. } => false,
            Ending::Panicked { .. } => true,
        });
        if is_abandoned && mode == Mode::Exclusive {
            self.abandoned = Some(now);
        }
        token.is_some()
    }

    /// Makes the exclusive holder a reader, together with the readers in the queue.
    pub(super) fn downgrade(
        &mut self,
        request: Request<'_>,
        now: BootInstant,
        counter: &mut Counter,
        granted: &mut Vec<Owner>,
    ) -> Token {
        // The holder was told of an abandonment when it got the lock.
        let token = counter.next(false);
        let who = Who::Owner(request.owner.clone(), token);
        let since = self.holders.holders().first().map_or(now, |one| one.since);
        let holder = Holder::new(who, Mode::Shared, since, now.plus(request.ttl));
        self.holders = Holders::Readers(vec![holder]);
        self.let_in(true, now, None, granted);
        token
    }

    /// The lease, if it is the owner's.
    pub(super) fn holder(&mut self, request: Request<'_>, now: BootInstant) -> Option<&mut Holder> {
        let holder = self.holders.get_mut(request.owner, request.claim.mode)?;
        (holder.token().is_some() && now < holder.until).then_some(holder)
    }

    /// One of the holders.
    pub(super) fn whose(&self) -> Option<&Owner> {
        self.holders
            .holders()
            .iter()
            .find_map(|one| match &one.who {
                Who::Given(owner, _) | Who::Owner(owner, _) => Some(owner),
                Who::Granted(_) | Who::Nobody => None,
            })
    }

    pub(super) fn free_permits(&self, of: u32, now: BootInstant) -> u32 {
        let mut there = self.holders.holders().iter().filter(|one| now < one.until);
        let used = match self.holders {
            Holders::Permits(_) => used(there),
            // Where a writer or readers have the name, none is free.
            _ if there.next().is_some() => of.into(),
            _ => 0,
        };
        of.saturating_sub(used.try_into().unwrap_or(of))
    }

    /// For how long the name stays taken if no holder renews; of permits, until the first comes back.
    pub(super) fn remaining(&self, now: BootInstant) -> Option<Duration> {
        let ends = self.holders.holders().iter().map(|holder| holder.until);
        let end = if self.holders.is_permits() {
            ends.min()
        } else {
            ends.max()
        };
        end.map(|end| end.since(now))
    }

    /// Of an owner in the queue: when somebody's time is over, so that it may be its turn.
    pub(super) fn changes(&self, owner: &Owner) -> Option<BootInstant> {
        self.place(owner)?;
        let ends = self.holders.holders().iter().map(|holder| holder.until);
        // When that waiter is gone, readers may come in.
        let first = self.first(false).map(|place| self.queue[place].overdue);
        Some(ends.chain(first).min().unwrap_or(BootInstant::MAX))
    }

    /// Whether there is nothing to remember.
    pub(super) fn is_free(&self, now: BootInstant) -> bool {
        let remembers = self.abandoned.is_some_and(|at| now < at.plus(ABANDONMENT));
        self.holders.is_empty() && self.queue.is_empty() && !remembers
    }

    /// Finds the holders that are gone, and lets in the next waiters. The owner that asks just now is there.
    pub(super) fn tidy(
        &mut self,
        now: BootInstant,
        asking: Option<&Owner>,
        granted: &mut Vec<Owner>,
    ) {
        let ended = self.holders.expire(now, asking);
        if let Some(until) = ended.as_ref().and_then(Holder::abandons) {
            self.abandoned = Some(until);
        }
        self.let_in(ended.is_some(), now, asking, granted);
    }

    /// Grants the name, one after the other, to the waiters whose turn it is.
    fn let_in(
        &mut self,
        after_exclusive: bool,
        now: BootInstant,
        asking: Option<&Owner>,
        granted: &mut Vec<Owner>,
    ) {
        self.drop_gone(now, asking);
        while let Some(place) = self.next(after_exclusive) {
            if !self.holders.fits(self.queue[place].mode) {
                break;
            }
            let waiter = self.queue.remove(place);
            granted.push(waiter.owner.clone());
            let who = Who::Granted(waiter.owner);
            let holder = Holder::new(who, waiter.mode, now, waiter.overdue);
            self.holders.add(waiter.mode, holder);
            self.drop_gone(now, asking);
        }
    }

    /// Those whose heartbeat didn't come, of the first in each queue: they don't say who goes before whom.
    fn drop_gone(&mut self, now: BootInstant, asking: Option<&Owner>) {
        for reads in [true, false] {
            while let Some(place) = self.first(reads)
                && self.queue[place].overdue <= now
                && asking != Some(&self.queue[place].owner)
            {
                self.queue.remove(place);
            }
        }
    }

    /// The waiter whose turn it is. Readers come when an exclusive holder has ended, unless the first of the others goes
    /// before readers, and when no other waits.
    fn next(&self, after_exclusive: bool) -> Option<usize> {
        let (reader, other) = (self.first(true), self.first(false));
        match other {
            Some(place) if !after_exclusive || self.queue[place].goes_first => other,
            _ => reader.or(other),
        }
    }

    /// The first reader in the queue, or the first of the others.
    fn first(&self, reads: bool) -> Option<usize> {
        let is_one = |waiter: &Waiter| (waiter.mode == Mode::Shared) == reads;
        self.queue.iter().position(is_one)
    }

    fn place(&self, owner: &Owner) -> Option<usize> {
        self.queue.iter().position(|waiter| waiter.owner == *owner)
    }

    fn leave(&mut self, owner: &Owner) {
        if let Some(place) = self.place(owner) {
            self.queue.remove(place);
        }
    }
}
