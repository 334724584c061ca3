//! One name: who holds it, and who waits. The rules are those of `lua/line.lua`.
//!
//! Whoever leaves, or is found to be gone, calls in who comes next. From then on the place is theirs, until the
//! time by which they promised to ask again: they ask, and have the lease. So none of those in line could be let in,
//! unless the time of somebody is over; and the next who asks finds that.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Condvar;

use super::counter::Counter;
use super::inside::{Holder, Inside, Who, used};
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::engine::heartbeat::IfTaken;
use crate::engine::{Release, Request};

/// How long an abandoned lock is remembered.
pub(super) const MEMORY: Duration = Duration::from_secs(24 * 3600);

/// One name.
#[derive(Debug, Default)]
pub(super) struct Entry {
    inside: Inside,
    /// When an exclusive lease ran out, unless the next exclusive holder was told.
    abandoned: Option<BootInstant>,
    /// In the order in which they came. There are two lines in it: those that read, who are called in together, and
    /// the others, one after the other.
    line: Vec<Waiter>,
}

/// One that waits.
#[derive(Debug)]
struct Waiter {
    owner: Owner,
    mode: Mode,
    /// Whether it goes before those that wait to read.
    goes_first: bool,
    /// By when it promised to ask again.
    overdue: BootInstant,
    /// Rung when it is called in.
    bell: Arc<Condvar>,
}

impl Entry {
    /// Whether it may have a lease now, or has one. Who is gone must have been found before.
    pub(super) fn is_turn_of(&self, request: Request<'_>) -> bool {
        let Claim { mode, prefer, .. } = *request.claim;
        let passes = mode == Mode::Shared && prefer == Prefer::Readers;
        self.inside.has(request.owner, mode)
            || (self.inside.fits(mode) && (passes || self.first(false).is_none()))
    }

    /// Lets the owner in, whose turn it is; and again, if it is in.
    pub(super) fn enter(
        &mut self,
        request: Request<'_>,
        now: BootInstant,
        counter: &mut Counter,
    ) -> Token {
        let (owner, mode) = (request.owner, request.claim.mode);
        let had = self.inside.get_mut(owner, mode).and_then(|one| one.token());
        let token = had.unwrap_or_else(|| counter.next(self.abandoned.is_some()));
        if mode == Mode::Exclusive {
            // Those that share are told as well, but it stays until one that may mend it was.
            self.abandoned = None;
        }
        let who = Who::Owner(owner.clone(), token);
        let holder = Holder::new(who, mode, now.plus(request.ttl));
        match self.inside.get_mut(owner, mode) {
            Some(place) => *place = holder,
            None => {
                self.leave(owner);
                self.inside.add(mode, holder);
            }
        }
        token
    }

    /// Whether it is in, or in line.
    pub(super) fn knows(&self, request: Request<'_>) -> bool {
        self.inside.has(request.owner, request.claim.mode) || self.place(request.owner).is_some()
    }

    /// Puts one that can't have a lease now into the line, or keeps its place, or takes it out.
    pub(super) fn stand(
        &mut self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        now: BootInstant,
        bell: &Arc<Condvar>,
    ) {
        let IfTaken::Wait {
            heartbeat_within, ..
        } = if_taken
        else {
            self.release(request, Release::UNKNOWN, now);
            return;
        };
        let (claim, overdue) = (request.claim, now.plus(heartbeat_within));
        if let Some(holder) = self.inside.get_mut(request.owner, claim.mode) {
            holder.until = overdue;
        } else if let Some(place) = self.place(request.owner) {
            self.line[place].overdue = overdue;
        } else {
            self.line.push(Waiter {
                owner: request.owner.clone(),
                mode: claim.mode,
                goes_first: claim.mode == Mode::Exclusive && claim.prefer == Prefer::Writers,
                overdue,
                bell: bell.clone(),
            });
            // One that wants several names may find this one free.
            self.call(false, now, None);
        }
    }

    /// Ends the lease, if it is the owner's, and says whether it was. Who doesn't know what it has leaves the line,
    /// too.
    pub(super) fn release(
        &mut self,
        request: Request<'_>,
        Release { ending, keep, .. }: Release<'_>,
        now: BootInstant,
    ) -> bool {
        let (owner, mode) = (request.owner, request.claim.mode);
        self.tidy(now, None);
        if ending == Ending::Unknown {
            self.leave(owner);
        }
        let kept = match keep {
            Duration::ZERO => None,
            keep => self.inside.keep(owner, mode, now.plus(keep)),
        };
        let token = if kept.is_some() {
            kept
        } else {
            let ended = self.inside.remove(owner, mode);
            self.call(ended.is_some() && mode == Mode::Exclusive, now, None);
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

    /// Lets the exclusive holder read on, together with those that wait to read.
    pub(super) fn downgrade(
        &mut self,
        request: Request<'_>,
        now: BootInstant,
        counter: &mut Counter,
    ) -> Token {
        // Of what was abandoned it was told before.
        let token = counter.next(false);
        let who = Who::Owner(request.owner.clone(), token);
        let holder = Holder::new(who, Mode::Shared, now.plus(request.ttl));
        self.inside = Inside::Readers(vec![holder]);
        self.call(true, now, None);
        token
    }

    /// The lease, if it is the owner's.
    pub(super) fn holder(&mut self, request: Request<'_>, now: BootInstant) -> Option<&mut Holder> {
        let holder = self.inside.get_mut(request.owner, request.claim.mode)?;
        (holder.token().is_some() && now < holder.until).then_some(holder)
    }

    /// One of those that have it.
    pub(super) fn whose(&self) -> Option<&Owner> {
        self.inside.holders().iter().find_map(|one| match &one.who {
            Who::Owner(owner, _) => Some(owner),
            Who::Called(_) | Who::Nobody => None,
        })
    }

    pub(super) fn free_permits(&self, of: u32, now: BootInstant) -> u32 {
        let mut there = self.inside.holders().iter().filter(|one| now < one.until);
        let used = match self.inside {
            Inside::Permits(_) => used(there),
            // LeaseMonitor otherwise, none is free.
            _ if there.next().is_some() => of.into(),
            _ => 0,
        };
        of.saturating_sub(used.try_into().unwrap_or(of))
    }

    /// When it is free if nobody renews; or when something comes back of what is shared out.
    pub(super) fn remaining(&self, now: BootInstant) -> Option<Duration> {
        let ends = self.inside.holders().iter().map(|holder| holder.until);
        let end = if self.inside.is_permits() {
            ends.min()
        } else {
            ends.max()
        };
        end.map(|end| end.since(now))
    }

    /// The bell of one in line, and when somebody's time is over: then it may be its turn without a bell.
    pub(super) fn waits(&self, owner: &Owner) -> Option<(Arc<Condvar>, BootInstant)> {
        let waiter = &self.line[self.place(owner)?];
        let ends = self.inside.holders().iter().map(|holder| holder.until);
        // When that one is gone, those that wait to read may come in.
        let first = self.first(false).map(|place| self.line[place].overdue);
        let changes = ends.chain(first).min().unwrap_or(BootInstant::MAX);
        Some((waiter.bell.clone(), changes))
    }

    /// Whether there is nothing to remember.
    pub(super) fn is_free(&self, now: BootInstant) -> bool {
        let remembers = self.abandoned.is_some_and(|at| now < at.plus(MEMORY));
        self.inside.is_empty() && self.line.is_empty() && !remembers
    }

    /// Finds who is gone, and calls in who comes next. Whoever asks just now is there.
    pub(super) fn tidy(&mut self, now: BootInstant, asking: Option<&Owner>) {
        let ended = self.inside.expire(now, asking);
        if let Some(Holder {
            who: Who::Owner(..),
            until,
            ..
        }) = ended
        {
            self.abandoned = Some(until);
        }
        self.call(ended.is_some(), now, asking);
    }

    /// Calls in, one after the other, those whose turn it is.
    fn call(&mut self, after_exclusive: bool, now: BootInstant, asking: Option<&Owner>) {
        while let Some(place) = self.next(after_exclusive) {
            let waiter = &self.line[place];
            let is_gone = waiter.overdue <= now && asking != Some(&waiter.owner);
            if !is_gone && !self.inside.fits(waiter.mode) {
                break;
            }
            let waiter = self.line.remove(place);
            if !is_gone {
                waiter.bell.notify_one();
                let who = Who::Called(waiter.owner);
                let holder = Holder::new(who, waiter.mode, waiter.overdue);
                self.inside.add(waiter.mode, holder);
            }
        }
    }

    /// Whose turn it is. Readers' when an exclusive holder has ended, unless the first of the others wants to go
    /// before them, and when nobody else waits.
    fn next(&self, after_exclusive: bool) -> Option<usize> {
        let (reader, other) = (self.first(true), self.first(false));
        match other {
            Some(place) if !after_exclusive || self.line[place].goes_first => other,
            _ => reader.or(other),
        }
    }

    /// The first of those that wait to read, or of the others.
    fn first(&self, reads: bool) -> Option<usize> {
        let is_one = |waiter: &Waiter| (waiter.mode == Mode::Shared) == reads;
        self.line.iter().position(is_one)
    }

    fn place(&self, owner: &Owner) -> Option<usize> {
        self.line.iter().position(|waiter| waiter.owner == *owner)
    }

    fn leave(&mut self, owner: &Owner) {
        if let Some(place) = self.place(owner) {
            self.line.remove(place);
        }
    }
}
