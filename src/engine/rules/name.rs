//! One name: the list of those that hold it and of those that wait, as the file of a directory has it line by line. The
//! rules are those of `lua/lib/hand_off.lua`.
//!
//! When a holder leaves, or is found to be gone, the name is granted to the next waiter, which gets its lease when it
//! asks. So no waiter could be let in now, unless the time of a holder is over; the next owner that asks finds that.

use std::{collections::BTreeSet, mem::discriminant, time::Duration};

use super::entry::{Entry, EntryState, PresenceId, Step};
use crate::base::{BootInstant, Claim, Ending, Mode, Owner, Prefer, Token, limits::ABANDONMENT};
use crate::engine::line::{Standing, standing, used};
use crate::engine::{Release, Request};

/// One name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameState {
    /// Until when the next exclusive holder is to be told that the one before never released.
    pub(crate) abandoned_until: Option<BootInstant>,
    /// First those that hold it, all in one way, then the others; all in the order in which they came. Two queues are
    /// among them: readers, who are let in together, and the other waiters, one after the other.
    pub(crate) entries: Vec<Entry>,
}

impl NameState {
    /// Those that hold it, or keep it from others.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|one| one.holds())
    }

    /// Those that hold it now.
    pub(super) fn there(&self, now: BootInstant) -> impl Iterator<Item = &Entry> {
        self.holders().filter(move |one| now < one.until)
    }

    fn holders_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().filter(|one| one.holds())
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|one| one.waits())
    }

    pub(super) fn is_shared(&self) -> bool {
        self.holders().any(|one| one.mode == Mode::Shared)
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.holders().any(|one| one.mode == Mode::Exclusive)
    }

    /// Where the owner stands among the holders, if it holds it in that way.
    pub(super) fn held(&self, owner: &Owner, mode: Mode) -> Option<usize> {
        let is_alike = |one: &Entry| discriminant(&one.mode) == discriminant(&mode);
        let mut all = self.entries.iter();
        all.position(|one| one.is_of(owner) && one.holds() && is_alike(one))
    }

    /// Where it stands among the waiters.
    fn place(&self, owner: &Owner) -> Option<usize> {
        let mut all = self.entries.iter();
        all.position(|one| one.is_of(owner) && one.waits())
    }

    /// The first reader that waits, or the first of the others.
    fn first(&self, reads: bool) -> Option<usize> {
        let mut all = self.entries.iter();
        all.position(|one| one.waits() && (one.mode == Mode::Shared) == reads)
    }

    fn fits(&self, mode: Mode) -> bool {
        let held: Vec<_> = self.holders().map(|one| one.mode).collect();
        standing(&held, mode) == Standing::Holds
    }

    /// Whether the owner may have a lease now, or has one. Holders that are gone must have been found before.
    pub(super) fn is_turn_of(&self, request: Request<'_>) -> bool {
        let Claim { mode, prefer, .. } = *request.claim;
        let passes = mode == Mode::Shared && prefer == Prefer::Readers;
        self.held(request.owner, mode).is_some()
            || (self.fits(mode) && (passes || self.first(false).is_none()))
    }

    /// Gives the owner, whose turn it is, its lease; the same one, if it has it.
    pub(super) fn enter(&mut self, request: Request<'_>, step: &mut Step) -> Token {
        let (owner, mode) = (request.owner, request.claim.mode);
        let at = self.held(owner, mode).unwrap_or_else(|| {
            self.leave(owner);
            let at = self.holders().count();
            let entry = Entry::new(request, EntryState::Granted, step);
            self.entries.insert(at, entry);
            at
        });
        let had = self.entries[at].token();
        let token = had.unwrap_or_else(|| step.next_token(self.abandoned_until.is_some()));
        let entry = &mut self.entries[at];
        if had.is_none() {
            entry.since = step.now;
        }
        (entry.state, entry.mode) = (EntryState::Has(token), mode);
        entry.until = step.now.plus(request.ttl);
        if mode == Mode::Exclusive {
            // Readers are told as well, but it stays until a holder was told that may mend it.
            self.abandoned_until = None;
        }
        token
    }

    /// Whether the owner holds it, or waits for it.
    pub(super) fn knows(&self, request: Request<'_>) -> bool {
        self.held(request.owner, request.claim.mode).is_some() || self.waits(request.owner)
    }

    pub(super) fn waits(&self, owner: &Owner) -> bool {
        self.place(owner).is_some()
    }

    /// Has an owner wait that can't have a lease now, unless it does already.
    pub(super) fn enter_queue(&mut self, request: Request<'_>, step: &mut Step) {
        if self.knows(request) {
            return;
        }
        let Claim { mode, prefer, .. } = *request.claim;
        let waits = EntryState::Waits {
            first: mode == Mode::Exclusive && prefer == Prefer::Writers,
            more: request.claim.is_multi(),
        };
        self.entries.push(Entry::new(request, waits, step));
        // An owner of several names may find this one free.
        self.let_in(false, step);
    }

    /// Ends the lease, if it is the owner's, and says whether it was. An owner that doesn't know what it has leaves the
    /// queue, too.
    pub(super) fn release(
        &mut self,
        request: Request<'_>,
        Release { ending, keep, .. }: Release<'_>,
        step: &mut Step,
    ) -> bool {
        let (owner, mode) = (request.owner, request.claim.mode);
        self.tidy(step);
        if ending == Ending::Unknown {
            self.leave(owner);
        }
        let held = self.held(owner, mode);
        let token = held.and_then(|at| self.entries[at].token());
        match held {
            Some(at) if token.is_some() && keep > Duration::ZERO => {
                let entry = &mut self.entries[at];
                (entry.owner, entry.presence, entry.state) = (None, None, EntryState::Kept);
                entry.until = step.now.plus(keep);
            }
            held => {
                held.map(|at| self.entries.remove(at));
                self.let_in(held.is_some() && mode == Mode::Exclusive, step);
            }
        }
        let is_abandoned = token.is_some_and(|token| match ending {
            // Nobody was told: the next holder finds it as this one did.
            Ending::Unknown => token.abandoned,
            Ending::Clean { .. } => false,
            Ending::Panicked { .. } => true,
        });
        if is_abandoned && mode == Mode::Exclusive {
            self.abandon(step.now);
        }
        token.is_some()
    }

    /// Makes the exclusive holder a reader, together with the readers that wait.
    pub(super) fn downgrade(&mut self, request: Request<'_>, step: &mut Step) -> Token {
        // The holder was told of an abandonment when it got the lock.
        let token = step.next_token(false);
        for holder in self.holders_mut() {
            (holder.state, holder.mode) = (EntryState::Has(token), Mode::Shared);
            holder.until = step.now.plus(request.ttl);
        }
        self.let_in(true, step);
        token
    }

    /// The lease, if it is the owner's.
    pub(super) fn lease(&self, request: Request<'_>, now: BootInstant) -> Option<&Entry> {
        let at = self.held(request.owner, request.claim.mode)?;
        let entry = &self.entries[at];
        (entry.token().is_some() && now < entry.until).then_some(entry)
    }

    pub(super) fn lease_mut(
        &mut self,
        request: Request<'_>,
        now: BootInstant,
    ) -> Option<&mut Entry> {
        self.lease(request, now)?;
        let at = self.held(request.owner, request.claim.mode)?;
        self.entries.get_mut(at)
    }

    /// One of its holders, for the log of one that waits, if that is read: `<host>/<pid>/<thread>`.
    pub(super) fn holder_for_log(&self, request: Request<'_>) -> Option<String> {
        if !log::log_enabled!(log::Level::Debug) || self.is_turn_of(request) {
            return None;
        }
        let holder = self.holders().find(|one| one.token().is_some())?;
        Some(holder.owner.as_ref()?.holder().to_owned())
    }

    /// Makes the lease of `from` that of the request, with a token of its own; the same one, if it has it already.
    pub(super) fn adopt(
        &mut self,
        request: Request<'_>,
        from: &Owner,
        step: &mut Step,
    ) -> Option<Token> {
        let until = step.now.plus(request.ttl);
        if let Some(entry) = self.lease_mut(request, step.now) {
            entry.until = until;
            return entry.token();
        }
        let theirs = Request {
            owner: from,
            ..request
        };
        let entry = self.lease_mut(theirs, step.now)?;
        // Whoever had it was told of an abandonment.
        let token = step.next_token(false);
        *entry = Entry {
            mode: entry.mode,
            until,
            ..Entry::new(request, EntryState::Has(token), step)
        };
        Some(token)
    }

    pub(super) fn free_permits(&self, of: u32, now: BootInstant) -> u32 {
        let there: Vec<_> = self.there(now).map(|one| one.mode).collect();
        let is_permit = |mode: &Mode| matches!(mode, Mode::Permits { .. });
        let used = match there.iter().all(is_permit) {
            true => used(&there),
            // Where a writer or readers have the name, none is free.
            false => of.into(),
        };
        of.saturating_sub(used.try_into().unwrap_or(of))
    }

    /// When the time of a holder is over, so that it may be the turn of one that waits.
    pub(super) fn changes(&self) -> BootInstant {
        let ends = self.holders().map(|one| one.until);
        ends.min().unwrap_or(BootInstant::MAX)
    }

    /// Whether there is nothing to remember.
    pub(super) fn is_free(&self, now: BootInstant) -> bool {
        self.entries.is_empty() && self.abandoned_until.is_none_or(|until| until <= now)
    }

    /// Has the next exclusive holder find it abandoned.
    pub(super) fn abandon(&mut self, at: BootInstant) {
        self.abandoned_until = Some(at.plus(ABANDONMENT));
    }

    /// Whether it was broken while the owner had it.
    pub(super) fn was_broken(&self, owner: &Owner, now: BootInstant) -> bool {
        let mut broken = self.entries.iter().filter(|one| one.is_broken());
        broken.any(|one| one.is_of(owner) && now < one.until)
    }

    /// Takes it from all that have it, and lets in the next. Gives who had it, and whether that one had it exclusively.
    pub(super) fn end_all(&mut self, step: &mut Step) -> (Vec<Entry>, bool) {
        self.tidy(step);
        let was_exclusive = self.is_exclusive();
        let all = std::mem::take(&mut self.entries).into_iter();
        let (ended, others) = all.partition(Entry::holds);
        self.entries = others;
        self.let_in(was_exclusive, step);
        (ended, was_exclusive)
    }

    /// Ends what owners have whose presence is gone, and lets in the next.
    pub(super) fn end(&mut self, gone: &BTreeSet<PresenceId>, step: &mut Step) {
        let is_gone = |one: &Entry| one.presence.is_some_and(|one| gone.contains(&one));
        for holder in self.holders_mut().filter(|one| is_gone(one)) {
            holder.until = step.now;
        }
        self.entries.retain(|one| !(one.waits() && is_gone(one)));
        self.tidy(step);
    }

    /// Ends what is over, and lets in the next.
    pub(super) fn tidy(&mut self, step: &mut Step) {
        let mut exclusive = None;
        self.entries.retain(|one| {
            let stays = step.now < one.until;
            if !stays && one.holds() && one.mode == Mode::Exclusive {
                exclusive = Some(one.abandons().then_some(one.until));
            }
            stays
        });
        if let Some(Some(until)) = exclusive {
            self.abandon(until);
        }
        self.let_in(exclusive.is_some(), step);
    }

    /// Grants the name, one after the other, to the waiters whose turn it is.
    pub(super) fn let_in(&mut self, after_exclusive: bool, step: &mut Step) {
        while let Some(at) = self.next(after_exclusive)
            && self.fits(self.entries[at].mode)
        {
            let last = self.holders().count();
            let entry = &mut self.entries[at];
            step.granted.push(entry.clone());
            (entry.state, entry.since) = (EntryState::Granted, step.now);
            self.entries[last..=at].rotate_right(1);
        }
    }

    /// The waiter whose turn it is. Readers come when an exclusive holder has ended, unless the first of the others
    /// goes before readers, and when no other waits.
    fn next(&self, after_exclusive: bool) -> Option<usize> {
        let (reader, other) = (self.first(true), self.first(false));
        match other {
            Some(at) if !after_exclusive || self.entries[at].goes_first() => other,
            _ => reader.or(other),
        }
    }

    fn leave(&mut self, owner: &Owner) {
        if let Some(at) = self.place(owner) {
            self.entries.remove(at);
        }
    }
}
