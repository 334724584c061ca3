//! For an engine that writes names down: how they come into a table and out of it, and what it does when owners are gone.

use super::super::name_state::NameState;
use super::super::written::Written;
use super::Table;
use crate::base::clock::BootInstant;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::Request;

impl Table {
    /// Puts a name into it, as it was written.
    pub(in crate::engine) fn put(&mut self, key: &Key, written: Written, now: BootInstant) {
        let abandoned = written.abandoned.then_some(now);
        self.counter.used(written.counter);
        for owner in &written.broken {
            self.broken.add(owner, BootInstant::MAX, now);
        }
        let state = NameState::of(written.entries, abandoned);
        self.names.insert(key.clone(), state);
    }

    /// The same in return, but for those whose lease was broken.
    pub(in crate::engine) fn written(&self, key: &Key) -> Written {
        let state = self.names.get(key);
        Written {
            counter: self.counter.last_used(),
            abandoned: state.is_some_and(NameState::is_abandoned),
            entries: state.map_or_else(Vec::new, NameState::entries),
            broken: Vec::new(),
        }
    }

    /// The token of the lease that was given to the owner, and that it may not know yet.
    pub(in crate::engine) fn given(&self, request: Request<'_>) -> Option<Token> {
        let state = self.names.get(request.key())?;
        state.given(request.owner)
    }

    /// Whether an owner has a name, or waits for it.
    pub(in crate::engine) fn mentions(&self, key: &Key, owner: &Owner) -> bool {
        let state = self.names.get(key);
        state.is_some_and(|state| state.mentions(owner))
    }

    /// Whose end may let that owner in.
    pub(in crate::engine) fn ahead_of(&self, request: Request<'_>) -> Vec<Owner> {
        let keys = request.claim.keys().iter();
        let states = keys.filter_map(|key| self.names.get(key));
        states
            .flat_map(|state| state.ahead_of(request.owner, request.claim.mode))
            .collect()
    }

    /// How many wait ahead of an owner, of several names where most do.
    pub(in crate::engine) fn place_of(&self, request: Request<'_>) -> u32 {
        let keys = request.claim.keys().iter();
        let states = keys.filter_map(|key| self.names.get(key));
        let places = states.filter_map(|state| state.place_of(request.owner));
        places.max().unwrap_or(0).try_into().unwrap_or(u32::MAX)
    }

    /// Those that wait for a name, and whose end each of them waits for.
    pub(in crate::engine) fn waiting(&self, key: &Key) -> Vec<(Owner, Vec<Owner>)> {
        let state = self.names.get(key);
        state.map_or_else(Vec::new, NameState::waiting)
    }

    /// Gives a lease to whom the name was granted, without being asked for it.
    pub(in crate::engine) fn give(&mut self, key: &Key, owner: &Owner) {
        if let Some(state) = self.names.get_mut(key) {
            state.give(owner, &mut self.counter);
        }
    }

    /// Whoever was given the lease with this token knows that it has it.
    pub(in crate::engine) fn has_seen(&mut self, key: &Key, token: u64) {
        if let Some(state) = self.names.get_mut(key) {
            state.has_seen(token);
        }
    }

    /// Ends what owners have that are gone, and lets in the next.
    pub(in crate::engine) fn end(
        &mut self,
        key: &Key,
        is_gone: &dyn Fn(&Owner) -> bool,
        now: BootInstant,
    ) {
        if let Some(state) = self.names.get_mut(key) {
            state.end(is_gone, now, &mut self.granted);
        }
    }
}
