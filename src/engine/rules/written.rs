//! What an engine asks that writes names down: whose end lets a waiter in, and what it does when owners are gone.

use super::counter::Counter;
use super::entry::{Entry, EntryState};
use super::name::NameState;
use super::table::Table;
use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::Request;

impl NameState {
    /// Those that hold it.
    pub(crate) fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.holders().filter_map(|one| one.owner.as_ref())
    }

    /// Those that wait, each with the owners whose end may let it in.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Owner, Vec<&Owner>)> {
        let mut last = None;
        self.waiters().filter_map(move |one| {
            let owner = one.owner.as_ref()?;
            let ahead = match one.mode {
                Mode::Shared => self.ahead_of_newcomer(one.mode),
                _ => match last.replace(owner) {
                    Some(before) => vec![before],
                    None => self.owners().collect(),
                },
            };
            Some((owner, ahead))
        })
    }

    /// The same for one that waits behind all others: those that hold, and the first waiter that isn't a reader.
    fn ahead_of_newcomer(&self, mode: Mode) -> Vec<&Owner> {
        // Readers that hold aren't in a reader's way.
        let in_the_way = !(mode == Mode::Shared && self.is_shared());
        let first = self.waiters().find(|one| one.mode != Mode::Shared);
        let first = first.and_then(|one| one.owner.as_ref());
        let holders = self.owners().filter(|_| in_the_way);
        holders.chain(first).collect()
    }

    fn ahead_of(&self, request: Request<'_>) -> Vec<&Owner> {
        let mode = request.claim.mode;
        if self.held(request.owner, mode).is_some() {
            return Vec::new();
        }
        let mut waiting = self.waiting();
        let its = waiting.find(|(owner, _)| *owner == request.owner);
        its.map_or_else(|| self.ahead_of_newcomer(mode), |(_, ahead)| ahead)
    }

    /// Whether an owner is on the list.
    pub(crate) fn mentions(&self, owner: &Owner) -> bool {
        self.entries.iter().any(|one| one.is_of(owner))
    }

    /// Whether the owner waits for this name and for no other.
    pub(crate) fn waits_alone(&self, owner: &Owner) -> bool {
        let mut waiters = self.waiters().filter(|one| one.is_of(owner));
        waiters.any(|one| matches!(one.state, EntryState::Waits { more: false, .. }))
    }

    /// The owners whose lease was broken, and who weren't told.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &Owner> {
        let broken = self.entries.iter().filter(|one| one.is_broken());
        broken.filter_map(|one| one.owner.as_ref())
    }

    /// Gives a lease to whom the name was granted, without being asked for it.
    fn give(&mut self, owner: &Owner, counter: &mut Counter) {
        let is_abandoned = self.abandoned_until.is_some();
        let is_its = |one: &&mut Entry| one.state == EntryState::Granted && one.is_of(owner);
        let Some(entry) = self.entries.iter_mut().find(is_its) else {
            return;
        };
        entry.state = EntryState::Given(counter.next(is_abandoned));
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
}

impl Table {
    /// Puts a name into it, as it was written.
    pub(crate) fn put(&mut self, key: &Key, state: NameState, last_used: u64) {
        self.counter.used(last_used);
        self.names.insert(key.clone(), state);
    }

    pub(crate) fn last_used(&self) -> u64 {
        self.counter.last_used()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&NameState> {
        self.names.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut NameState> {
        self.names.get_mut(key)
    }

    /// The token of the lease that was given to the owner, and that it may not know yet.
    pub(crate) fn given(&self, request: Request<'_>) -> Option<Token> {
        let mut entries = self.get(request.key())?.entries.iter();
        entries.find_map(|one| match one.state {
            EntryState::Given(token) if one.is_of(request.owner) => Some(token),
            _ => None,
        })
    }

    /// Whose end may let that owner in, whether it waits or doesn't yet.
    pub(crate) fn ahead_of(&self, request: Request<'_>) -> Vec<Owner> {
        let states = self.states(request);
        let ahead = states.flat_map(|state| state.ahead_of(request));
        ahead.cloned().collect()
    }

    /// How many wait ahead of an owner, of several names where most do.
    pub(crate) fn place_of(&self, request: Request<'_>) -> u32 {
        let places = self.states(request).filter_map(|state| {
            let mut waiters = state.waiters();
            waiters.position(|one| one.is_of(request.owner))
        });
        places.max().unwrap_or(0).try_into().unwrap_or(u32::MAX)
    }

    fn states(&self, request: Request<'_>) -> impl Iterator<Item = &NameState> {
        let keys = request.claim.keys().iter();
        keys.filter_map(|key| self.names.get(key))
    }

    /// Gives a lease to whom the name was granted, without being asked for it.
    pub(crate) fn give(&mut self, key: &Key, owner: &Owner) {
        if let Some(state) = self.names.get_mut(key) {
            state.give(owner, &mut self.counter);
        }
    }

    /// Ends what owners have that are gone, and lets in the next.
    pub(crate) fn end(&mut self, key: &Key, is_gone: &dyn Fn(&Owner) -> bool, now: BootInstant) {
        if let Some(state) = self.names.get_mut(key) {
            state.end(is_gone, now, &mut self.granted);
        }
    }

    /// Forgets that the owner's lease was broken.
    pub(crate) fn remove_broken(&mut self, key: &Key, owner: &Owner) {
        if let Some(state) = self.names.get_mut(key) {
            state
                .entries
                .retain(|one| !(one.is_broken() && one.is_of(owner)));
        }
    }
}
