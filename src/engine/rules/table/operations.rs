//! What operators see of all names and do with them, and how a lease passes to another process.

use super::Table;
use crate::base::clock::BootInstant;
use crate::base::inspection::{Holder, Inspection, LockState};
use crate::base::name::{Key, Namespace};
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::Request;

/// What a break did.
#[derive(Debug)]
pub(in crate::engine) struct Broken {
    /// Who had the lock.
    pub(in crate::engine) holders: Vec<Holder>,
    /// Whose leases have ended.
    pub(in crate::engine) owners: Vec<Owner>,
}

impl Table {
    pub(in crate::engine) fn inspect(&self, key: &Key, now: BootInstant) -> Inspection {
        let state = self.names.get(key);
        let last_used = Some(self.counter.last_used()).filter(|last| *last > 0);
        let held = state.and_then(|state| state.largest_token());
        Inspection {
            name: key.name().to_owned(),
            state: state.map_or(LockState::Free, |state| state.lock_state(now)),
            holders: state.map_or_else(Vec::new, |state| state.seen_holders(now)),
            waiters: state.map_or_else(Vec::new, |state| state.seen_waiters(now)),
            // The counter is that of all names: while nobody holds this one, its own last token isn't known better.
            last_token: held.or(last_used),
        }
    }

    /// The names of a namespace that are taken and begin with `prefix`.
    pub(in crate::engine) fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        now: BootInstant,
    ) -> Vec<String> {
        let is_one =
            |key: &&Key| key.namespace() == namespace.as_str() && key.name().starts_with(prefix);
        let taken = self.names.iter().filter(|(_, state)| state.is_taken(now));
        let names = taken.map(|(key, _)| key).filter(is_one);
        names.map(|key| key.name().to_owned()).collect()
    }

    /// Those that have it, or to whom it was granted.
    pub(in crate::engine) fn holders_of(&self, key: &Key) -> Vec<Owner> {
        let state = self.names.get(key);
        state.map_or_else(Vec::new, |state| state.owners())
    }

    /// Takes a lock from whoever has it, and lets in the next.
    pub(in crate::engine) fn break_lock(&mut self, key: &Key, now: BootInstant) -> Broken {
        let Some(state) = self.names.get_mut(key) else {
            return Broken {
                holders: Vec::new(),
                owners: Vec::new(),
            };
        };
        let (ended, was_exclusive) = state.end_all(now, &mut self.granted);
        if was_exclusive && ended.iter().any(|one| one.token().is_some()) {
            state.abandon(now);
        }
        if state.is_free(now) {
            self.names.remove(key);
        }
        let holders = ended.iter().filter_map(|one| one.seen(now)).collect();
        let mut owners = Vec::new();
        // One to whom the lock was granted, and who doesn't know it yet, may ask anew.
        for one in ended.iter().filter(|one| one.token().is_some()) {
            if let Some(owner) = one.owner() {
                self.broken.add(owner, one.until, now);
                owners.push(owner.clone());
            }
        }
        Broken { holders, owners }
    }

    /// Makes a lease of `from` that of the request. `None` when a part of it isn't the other's any more: then nothing
    /// changes.
    pub(in crate::engine) fn adopt(
        &mut self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
        now: BootInstant,
    ) -> Option<Token> {
        let keys = request.claim.keys();
        let names = &mut self.names;
        let is_whole = keys.iter().all(|key| {
            let state = names.get_mut(key);
            state.is_some_and(|state| state.is_of_either(request, from, now))
        });
        if !is_whole {
            return None;
        }
        self.counter.used(last_used);
        let tokens = keys.iter().filter_map(|key| {
            let state = self.names.get_mut(key)?;
            state.adopt(request, from, now, &mut self.counter)
        });
        let token = tokens.reduce(Token::and)?;
        self.counter.used(token.number);
        Some(token)
    }

    /// Forgets who has a lock, as a server does that loses its data, or one whose lease has run out, and lets in the next.
    /// Gives who had it.
    #[cfg(feature = "testing")]
    pub(in crate::engine) fn forget(
        &mut self,
        key: &Key,
        is_abandoned: bool,
        now: BootInstant,
    ) -> Vec<Owner> {
        let state = self.names.entry(key.clone()).or_default();
        let (ended, _) = state.end_all(now, &mut self.granted);
        if is_abandoned {
            state.abandon(now);
        }
        if state.is_free(now) {
            self.names.remove(key);
        }
        ended
            .iter()
            .filter_map(|one| one.owner().cloned())
            .collect()
    }
}
