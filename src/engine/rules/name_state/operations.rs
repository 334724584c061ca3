//! What operators see of a name and do with it, and how its lease passes to another process.

use std::time::Duration;

use super::super::counter::Counter;
use super::super::holders::{Holder, Holders, Who, used};
use super::{NameState, Waiter};
use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::inspection::{self, LockState, Party, Wants};
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::Request;

impl NameState {
    /// Whether somebody has it, or keeps it from others.
    pub(in super::super) fn is_taken(&self, now: BootInstant) -> bool {
        self.there(now).next().is_some()
    }

    pub(in super::super) fn lock_state(&self, now: BootInstant) -> LockState {
        let mut there = self.there(now).peekable();
        if there.peek().is_none() {
            return LockState::Free;
        }
        if let Holders::Permits(_) = self.holders {
            let (there, of) = (self.there(now), self.there(now).map(|one| one.of).max());
            let taken = used(there).try_into().unwrap_or(u32::MAX);
            return LockState::Permits { taken, of };
        }
        if there.all(|one| one.owner().is_none()) {
            let ends = self.there(now).map(|one| one.until);
            let remaining = ends.max().map(|end| end.since(now));
            return LockState::Kept { remaining };
        }
        match self.holders {
            Holders::Readers(_) => LockState::Shared,
            _ => LockState::Exclusive,
        }
    }

    /// Who has it, in the order in which they came.
    pub(in super::super) fn seen_holders(&self, now: BootInstant) -> Vec<inspection::Holder> {
        self.there(now).filter_map(|one| one.seen(now)).collect()
    }

    /// Who waits, in the order in which they are let in if all holders release.
    pub(in super::super) fn seen_waiters(&self, now: BootInstant) -> Vec<inspection::Waiter> {
        let alive = self.queue.iter().filter(|waiter| now < waiter.overdue);
        let (readers, others): (Vec<_>, Vec<_>) =
            alive.partition(|waiter| waiter.mode == Mode::Shared);
        let (mut readers, mut others) = (readers.into_iter(), others.into_iter().peekable());
        let mut after_exclusive = matches!(self.holders, Holders::Exclusive(_));
        let mut seen = Vec::with_capacity(self.queue.len());
        loop {
            // As `next` chooses.
            let others_first = others
                .peek()
                .is_some_and(|one| !after_exclusive || one.goes_first);
            if !others_first {
                seen.extend(readers.by_ref().map(|one| one.seen(now)));
            }
            let Some(waiter) = others.next() else { break };
            after_exclusive = waiter.mode == Mode::Exclusive;
            seen.push(waiter.seen(now));
        }
        seen.extend(readers.map(|one| one.seen(now)));
        seen
    }

    /// The largest token of those that have it.
    pub(in super::super) fn largest_token(&self) -> Option<u64> {
        let holders = self.holders.holders().iter();
        let tokens = holders.filter_map(|one| Some(one.token()?.number));
        tokens.max()
    }

    /// Takes it from all that have it, and lets in the next. Gives who had it, and whether that one had it exclusively.
    pub(in super::super) fn end_all(
        &mut self,
        now: BootInstant,
        granted: &mut Vec<Owner>,
    ) -> (Vec<Holder>, bool) {
        self.tidy(now, None, granted);
        let was_exclusive = matches!(self.holders, Holders::Exclusive(_));
        let ended = self.holders.take();
        self.let_in(was_exclusive, now, None, granted);
        (ended, was_exclusive)
    }

    /// Has the next exclusive holder find it abandoned.
    pub(in super::super) fn abandon(&mut self, now: BootInstant) {
        self.abandoned = Some(now);
    }

    /// Whether the lease is that of one of the two.
    pub(in super::super) fn is_of_either(
        &mut self,
        request: Request<'_>,
        from: &Owner,
        now: BootInstant,
    ) -> bool {
        let theirs = Request {
            owner: from,
            ..request
        };
        self.holder(request, now).is_some() || self.holder(theirs, now).is_some()
    }

    /// Makes the other's lease that of the request, with a token of its own; the same one, if it has it already.
    pub(in super::super) fn adopt(
        &mut self,
        request: Request<'_>,
        from: &Owner,
        now: BootInstant,
        counter: &mut Counter,
    ) -> Option<Token> {
        let until = now.plus(request.ttl);
        if let Some(holder) = self.holder(request, now) {
            holder.until = until;
            return holder.token();
        }
        let theirs = Request {
            owner: from,
            ..request
        };
        let holder = self.holder(theirs, now)?;
        // Whoever had it was told of an abandonment.
        let token = counter.next(false);
        holder.who = Who::Owner(request.owner.clone(), token);
        (holder.since, holder.until) = (now, until);
        Some(token)
    }

    fn there(&self, now: BootInstant) -> impl Iterator<Item = &Holder> {
        let holders = self.holders.holders().iter();
        holders.filter(move |one| now < one.until)
    }
}

impl Holder {
    /// As others see it; `None` when nobody has it.
    pub(in super::super) fn seen(&self, now: BootInstant) -> Option<inspection::Holder> {
        Some(inspection::Holder {
            party: Party::of(self.owner()?.holder()),
            permits: self.count,
            held_for: Some(now.since(self.since)),
            remaining: (self.until != BootInstant::MAX).then(|| self.until.since(now)),
            token: self.token().map(|token| token.number),
        })
    }
}

impl Waiter {
    fn seen(&self, now: BootInstant) -> inspection::Waiter {
        let wants = match self.mode {
            Mode::Exclusive => Wants::Exclusive,
            Mode::Shared => Wants::Shared,
            Mode::Permits { count, .. } => Wants::Permits { count },
        };
        let waited_for: Duration = now.since(self.since);
        inspection::Waiter {
            party: Party::of(self.owner.holder()),
            wants,
            waited_for: Some(waited_for),
        }
    }
}
