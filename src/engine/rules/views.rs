//! What is asked of names beside the rules: by an engine that writes them down, and by operators.

use std::collections::BTreeSet;

use super::entry::{Entry, EntryState, PresenceId, Step};
use super::{Table, name::NameState};
use crate::base::{
    BootInstant, Holder, Inspection, Key, LockState, Mode, Namespace, Owner, Party, Waiter,
};
use crate::engine::{Request, line::used};

impl Table {
    /// Puts a name into it, as it was written.
    pub(crate) fn put(&mut self, key: &Key, state: NameState, last_used: u64) {
        self.step.used(last_used);
        self.names.insert(key.clone(), state);
    }

    pub(crate) fn last_used(&self) -> u64 {
        self.step.last_used
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&NameState> {
        self.names.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut NameState> {
        self.names.get_mut(key)
    }

    /// Those whose end may let that owner in, whether it waits or doesn't yet.
    pub(crate) fn ahead_of(&self, request: Request<'_>) -> BTreeSet<PresenceId> {
        let states = self.states(request);
        states
            .flat_map(|state| state.ahead_of(request))
            .flatten()
            .collect()
    }

    /// How many wait ahead of an owner, of several names where most do.
    pub(crate) fn place_of(&self, request: Request<'_>) -> u32 {
        let places = self.states(request).filter_map(|state| {
            let mut waiters = state.waiters();
            waiters.position(|one| one.is_of(request.owner))
        });
        places.max().unwrap_or(0).try_into().unwrap_or(u32::MAX)
    }

    /// Gives a lease to whom the name was granted, without being asked for it.
    pub(crate) fn give(&mut self, key: &Key, owner: &Owner) {
        if let Some(state) = self.names.get_mut(key) {
            state.give(owner, &mut self.step);
        }
    }

    /// Ends what owners have whose presence is gone, and lets in the next.
    pub(crate) fn end(&mut self, gone: &BTreeSet<PresenceId>) {
        for state in self.names.values_mut() {
            state.end(gone, &mut self.step);
        }
    }

    /// By what an owner is known to live from now on.
    pub(crate) fn set_presence(&mut self, owner: &Owner, presence: Option<PresenceId>) {
        self.step.presence = presence;
        let all = self.names.values_mut().flat_map(|state| &mut state.entries);
        for entry in all.filter(|one| one.is_of(owner)) {
            entry.presence = presence;
        }
    }

    /// By what an owner is known to live.
    pub(crate) fn presences_of(&self, owner: &Owner) -> BTreeSet<PresenceId> {
        let all = self.names.values().flat_map(|state| &state.entries);
        let its = all.filter(|one| one.is_of(owner));
        its.filter_map(|one| one.presence).collect()
    }

    /// Whether an owner is on a list.
    pub(crate) fn mentions(&self, owner: &Owner) -> bool {
        let mut all = self.names.values().flat_map(|state| &state.entries);
        all.any(|one| one.is_of(owner))
    }

    /// Forgets that the owner's lease was broken.
    pub(crate) fn remove_broken(&mut self, owner: &Owner) {
        for state in self.names.values_mut() {
            let entries = &mut state.entries;
            entries.retain(|one| !(one.is_broken() && one.is_of(owner)));
        }
    }

    pub(crate) fn inspect(&self, key: &Key, now: BootInstant) -> Inspection {
        let free = NameState::default();
        let state = self.get(key).unwrap_or(&free);
        let tokens = state.holders().filter_map(Entry::token);
        let held = tokens.map(|token| token.number).max();
        let last_used = Some(self.step.last_used).filter(|last| *last > 0);
        Inspection {
            name: key.name().to_owned(),
            state: state.lock_state(now),
            holders: state.there(now).filter_map(|one| one.seen(now)).collect(),
            waiters: state.seen_waiters(now),
            // The counter is that of all names: while nobody holds this one, its own last token isn't known better.
            last_token: held.or(last_used),
        }
    }

    /// The names of a namespace that are taken and begin with `prefix`.
    pub(crate) fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        now: BootInstant,
    ) -> Vec<String> {
        let is_one =
            |key: &&Key| key.namespace() == namespace.as_str() && key.name().starts_with(prefix);
        let is_taken = |state: &NameState| state.there(now).next().is_some();
        let taken = self.names.iter().filter(|(_, state)| is_taken(state));
        let names = taken.map(|(key, _)| key).filter(is_one);
        names.map(|key| key.name().to_owned()).collect()
    }
}

impl NameState {
    /// The owners that hold it.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &Entry> {
        self.holders().filter(|one| one.owner.is_some())
    }

    /// Those that wait, each with the presences of the owners whose end may let it in.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Entry, Vec<Option<PresenceId>>)> {
        let mut last = None;
        self.waiters().map(move |one| {
            let ahead = match one.mode {
                Mode::Shared => self.ahead_of_newcomer(one.mode),
                _ => match last.replace(one.presence) {
                    Some(before) => vec![before],
                    None => self.owned().map(|one| one.presence).collect(),
                },
            };
            (one, ahead)
        })
    }

    /// The same for one that waits behind all others: those that hold, and the first waiter that isn't a reader.
    fn ahead_of_newcomer(&self, mode: Mode) -> Vec<Option<PresenceId>> {
        // Readers that hold aren't in a reader's way.
        let in_the_way = !(mode == Mode::Shared && self.is_shared());
        let first = self.waiters().find(|one| one.mode != Mode::Shared);
        let holders = self.owned().filter(|_| in_the_way);
        holders.chain(first).map(|one| one.presence).collect()
    }

    fn ahead_of(&self, request: Request<'_>) -> Vec<Option<PresenceId>> {
        let mode = request.claim.mode;
        if self.held(request.owner, mode).is_some() {
            return Vec::new();
        }
        let mut waiting = self.waiting();
        let its = waiting.find(|(one, _)| one.is_of(request.owner));
        its.map_or_else(|| self.ahead_of_newcomer(mode), |(_, ahead)| ahead)
    }

    /// Whether the owner waits for this name and for no other.
    pub(crate) fn waits_alone(&self, owner: &Owner) -> bool {
        let mut waiters = self.waiters().filter(|one| one.is_of(owner));
        waiters.any(|one| matches!(one.state, EntryState::Waits { more: false, .. }))
    }

    /// Gives a lease to whom the name was granted, without being asked for it.
    fn give(&mut self, owner: &Owner, step: &mut Step) {
        let is_abandoned = self.abandoned_until.is_some();
        let is_its = |one: &&mut Entry| one.state == EntryState::Granted && one.is_of(owner);
        let Some(entry) = self.entries.iter_mut().find(is_its) else {
            return;
        };
        entry.state = EntryState::Given(step.next_token(is_abandoned));
        if entry.mode == Mode::Exclusive {
            self.abandoned_until = None;
        }
    }

    /// Whoever was given the lease with this token knows that it has it.
    pub(crate) fn has_seen(&mut self, number: u64) {
        for entry in &mut self.entries {
            if let EntryState::Given(token) = entry.state
                && token.number == number
            {
                entry.state = EntryState::Has(token);
            }
        }
    }

    fn lock_state(&self, now: BootInstant) -> LockState {
        let there: Vec<_> = self.there(now).collect();
        let modes: Vec<_> = there.iter().map(|one| one.mode).collect();
        match modes.first() {
            None => LockState::Free,
            Some(Mode::Permits { .. }) => LockState::Permits {
                taken: used(&modes).try_into().unwrap_or(u32::MAX),
                of: modes.iter().filter_map(|mode| mode.of_permits()).max(),
            },
            _ if there.iter().all(|one| one.state == EntryState::Kept) => {
                let ends = there.iter().map(|one| one.until);
                let remaining = ends.max().map(|end| end.since(now));
                LockState::Kept { remaining }
            }
            Some(Mode::Shared) => LockState::Shared,
            Some(Mode::Exclusive | Mode::Task) => LockState::Exclusive,
        }
    }

    /// Who waits, in the order in which they are let in if all holders release.
    fn seen_waiters(&self, now: BootInstant) -> Vec<Waiter> {
        let (readers, others): (Vec<_>, Vec<_>) =
            self.waiters().partition(|one| one.mode == Mode::Shared);
        let (mut readers, mut others) = (readers.into_iter(), others.into_iter().peekable());
        let mut after_exclusive = self.is_exclusive();
        let mut seen = Vec::new();
        loop {
            // As `next` chooses, in one pass: others wait for whoever looks, and there may be very many waiters.
            let others_first = others
                .peek()
                .is_some_and(|one| !after_exclusive || one.goes_first());
            if !others_first {
                seen.extend(readers.by_ref());
            }
            let Some(waiter) = others.next() else { break };
            after_exclusive = waiter.mode == Mode::Exclusive;
            seen.push(waiter);
        }
        seen.extend(readers);
        let seen = seen.into_iter().filter_map(|one| one.seen_waiter(now));
        seen.collect()
    }
}

impl Entry {
    /// As others see it; `None` when nobody has it.
    pub(super) fn seen(&self, now: BootInstant) -> Option<Holder> {
        Some(Holder {
            party: Party::of(self.owner.as_ref()?.holder()),
            permits: self.mode.permits(),
            held_for: Some(now.since(self.since)),
            remaining: (self.until != BootInstant::MAX).then(|| self.until.since(now)),
            token: self.token().map(|token| token.number),
        })
    }

    fn seen_waiter(&self, now: BootInstant) -> Option<Waiter> {
        Some(Waiter {
            party: Party::of(self.owner.as_ref()?.holder()),
            wants: self.mode.wants(),
            waited_for: Some(now.since(self.since)),
        })
    }
}
