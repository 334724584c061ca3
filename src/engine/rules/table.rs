//! All names in use.

use std::collections::HashMap;

use super::counter::Counter;
use super::entry::EntryState;
use super::name::NameState;
use crate::base::clock::BootInstant;
use crate::base::inspection::Holder;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::{Outcome, Release, Request};

/// All names in use.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(super) names: HashMap<Key, NameState>,
    pub(super) counter: Counter,
    purge_at: usize,
    /// To whom a name was granted, until they are told.
    pub(super) granted: Vec<Owner>,
}

/// The answer to a question for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted(Token),
    Taken {
        /// One of its holders: `<host>/<pid>/<thread>`, for the log of a waiter, if that is read.
        holder: Option<String>,
    },
    /// The owner's lease was broken.
    Broken,
}

/// What a break did.
#[derive(Debug, Default)]
pub(crate) struct Broken {
    /// Who had the lock.
    pub(crate) holders: Vec<Holder>,
    /// Whose leases have ended.
    pub(crate) owners: Vec<Owner>,
}

impl Table {
    /// Asks once. An owner that `waits` enters the queue, or keeps its place; another leaves it.
    pub(crate) fn acquire(
        &mut self,
        request: Request<'_>,
        waits: bool,
        now: BootInstant,
    ) -> Acquired {
        self.purge(now);
        if request.claim.has_many() {
            return self.acquire_all(request, waits, now);
        }
        let state = match self.names.get_mut(request.key()) {
            Some(state) => state,
            None => self.names.entry(request.key().clone()).or_default(),
        };
        if state.was_broken(request.owner, now) {
            return Acquired::Broken;
        }
        state.tidy(now, &mut self.granted);
        if state.is_turn_of(request) {
            return Acquired::Granted(state.enter(request, now, &mut self.counter));
        }
        Acquired::Taken {
            holder: self.queue(request.key(), request, waits, now),
        }
    }

    /// Takes all names or none. A waiter enters all queues at once, and keeps its place in each when its turn comes there:
    /// so of two waiters one is in front of the other wherever they meet, and none waits for one behind it. A waiter that has
    /// lost its place somewhere gives up the others and enters all queues anew.
    fn acquire_all(&mut self, request: Request<'_>, waits: bool, now: BootInstant) -> Acquired {
        if self.was_broken(request, now) {
            // Those of the names that weren't broken.
            self.release(request, Release::UNKNOWN, now);
            return Acquired::Broken;
        }
        let keys = request.claim.keys();
        let (mut known, mut turns) = (0, 0);
        for key in keys {
            let state = self.names.entry(key.clone()).or_default();
            state.tidy(now, &mut self.granted);
            known += usize::from(state.knows(request));
            turns += usize::from(state.is_turn_of(request));
        }
        if turns == keys.len()
            && let Some(token) = self.enter_all(request, now)
        {
            return Acquired::Granted(token);
        }
        if known < keys.len() {
            for key in keys {
                if let Some(state) = self.names.get_mut(key) {
                    state.release(request, Release::UNKNOWN, now, &mut self.granted);
                }
            }
        }
        let mut holder = None;
        for key in keys {
            let its = self.queue(key, request, waits, now);
            holder = holder.or(its);
        }
        Acquired::Taken { holder }
    }

    /// Gives the owner, whose turn it is everywhere, all names with one token.
    fn enter_all(&mut self, request: Request<'_>, now: BootInstant) -> Option<Token> {
        let tokens = request.claim.keys().iter().filter_map(|key| {
            let state = self.names.get_mut(key)?;
            Some(state.enter(request, now, &mut self.counter))
        });
        let token = tokens.reduce(Token::and)?;
        self.counter.used(token.number);
        Some(token)
    }

    /// Has an owner that can't have a lease now wait for this name, or leave it. Says who has it.
    fn queue(
        &mut self,
        key: &Key,
        request: Request<'_>,
        waits: bool,
        now: BootInstant,
    ) -> Option<String> {
        let state = self.names.get_mut(key)?;
        if waits {
            state.enter_queue(request, now, &mut self.granted);
        } else {
            state.release(request, Release::UNKNOWN, now, &mut self.granted);
        }
        let is_wanted = waits && log::log_enabled!(log::Level::Debug) && !state.is_turn_of(request);
        let holder = state.holders().find(|one| one.token().is_some());
        let holder = holder
            .filter(|_| is_wanted)
            .and_then(|one| one.owner.as_ref());
        let holder = holder.map(|owner| owner.holder().to_owned());
        self.forget_if_free(key, now);
        holder
    }

    /// A name that nobody holds, waits for or has abandoned has no state.
    fn forget_if_free(&mut self, key: &Key, now: BootInstant) {
        if self.names.get(key).is_some_and(|state| state.is_free(now)) {
            self.names.remove(key);
        }
    }

    /// Gives it for another ttl, if all of it is the owner's.
    pub(crate) fn renew(&mut self, request: Request<'_>, now: BootInstant) -> Outcome {
        let mut renewed = true;
        for key in request.claim.keys() {
            let state = self.names.get_mut(key);
            match state.and_then(|state| state.lease(request, now)) {
                Some(lease) => lease.until = now.plus(request.ttl),
                None => renewed = false,
            }
        }
        self.outcome(renewed, request, now)
    }

    /// Whether all of it is the owner's, and why not.
    pub(crate) fn is_owner(&mut self, request: Request<'_>, now: BootInstant) -> Outcome {
        let holds = self.holds(request, now);
        self.outcome(holds, request, now)
    }

    fn outcome(&self, holds: bool, request: Request<'_>, now: BootInstant) -> Outcome {
        match holds {
            false if self.was_broken(request, now) => Outcome::BROKEN,
            holds => Outcome::of(holds),
        }
    }

    fn was_broken(&self, request: Request<'_>, now: BootInstant) -> bool {
        let mut states = request.claim.keys().iter().map(|key| self.names.get(key));
        states.any(|state| state.is_some_and(|state| state.was_broken(request.owner, now)))
    }

    /// Whether all of it is the owner's.
    pub(crate) fn holds(&mut self, request: Request<'_>, now: BootInstant) -> bool {
        request.claim.keys().iter().all(|key| {
            let state = self.names.get_mut(key);
            state.is_some_and(|state| state.lease(request, now).is_some())
        })
    }

    /// Ends the lease, if it is the owner's.
    pub(crate) fn release(
        &mut self,
        request: Request<'_>,
        release: Release<'_>,
        now: BootInstant,
    ) -> Outcome {
        let mut released = true;
        for key in request.claim.keys() {
            let Some(state) = self.names.get_mut(key) else {
                released = false;
                continue;
            };
            let was_held = state.release(request, release, now, &mut self.granted);
            if state.is_free(now) {
                self.names.remove(key);
            }
            if was_held && let Some(number) = release.ending.counter() {
                self.counter.used(number);
            }
            released &= was_held;
        }
        self.outcome(released, request, now)
    }

    /// Gives the token, if it was the owner's, and whether that was done before.
    pub(crate) fn downgrade(
        &mut self,
        request: Request<'_>,
        last_used: u64,
        now: BootInstant,
    ) -> Option<(Token, bool)> {
        let state = self.names.get_mut(request.key())?;
        if state.lease(request, now).is_some() {
            self.counter.used(last_used);
            let token = state.downgrade(request, now, &mut self.counter, &mut self.granted);
            return Some((token, false));
        }
        let claim = request.claim.shared();
        let reads = Request {
            claim: &claim,
            ..request
        };
        let token = state.lease(reads, now)?.token()?;
        Some((token, true))
    }

    /// Makes a lease of `from` that of the request. `None` when a part of it isn't the other's any more: then nothing
    /// changes.
    pub(crate) fn adopt(
        &mut self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
        now: BootInstant,
    ) -> Option<Token> {
        let keys = request.claim.keys();
        let theirs = Request {
            owner: from,
            ..request
        };
        let is_of_either = |state: &mut NameState| {
            state.lease(request, now).is_some() || state.lease(theirs, now).is_some()
        };
        let is_whole = keys
            .iter()
            .all(|key| self.names.get_mut(key).is_some_and(is_of_either));
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

    /// Takes a lock from whoever has it, and lets in the next.
    pub(crate) fn break_lock(&mut self, key: &Key, now: BootInstant) -> Broken {
        let Some(state) = self.names.get_mut(key) else {
            return Broken::default();
        };
        let (ended, was_exclusive) = state.end_all(now, &mut self.granted);
        let holders = ended.iter().filter_map(|one| one.seen(now)).collect();
        // One to whom the lock was granted, and who doesn't know it yet, may ask anew.
        let leases = ended.into_iter().filter(|one| one.token().is_some());
        let mut owners = Vec::new();
        for mut entry in leases {
            owners.extend(entry.owner.clone());
            entry.state = EntryState::Broken;
            state.entries.push(entry);
        }
        if was_exclusive && !owners.is_empty() {
            state.abandon(now);
        }
        self.forget_if_free(key, now);
        Broken { holders, owners }
    }

    /// Forgets who has a lock, as a server does that loses its data, or one whose lease has run out, and lets in the next.
    /// Gives who had it.
    #[cfg(feature = "testing")]
    pub(crate) fn forget(&mut self, key: &Key, is_abandoned: bool, now: BootInstant) -> Vec<Owner> {
        let state = self.names.entry(key.clone()).or_default();
        let (ended, _) = state.end_all(now, &mut self.granted);
        if is_abandoned {
            state.abandon(now);
        }
        self.forget_if_free(key, now);
        ended.into_iter().filter_map(|one| one.owner).collect()
    }

    pub(crate) fn free_permits(&self, key: &Key, of: u32, now: BootInstant) -> u32 {
        let state = self.names.get(key);
        state.map_or(of, |state| state.free_permits(of, now))
    }

    /// Whether the owner waits: when it may be its turn although nobody grants it anything; `None` when it may be now.
    pub(crate) fn changes(&self, request: Request<'_>) -> Option<BootInstant> {
        let mut changes = None;
        for key in request.claim.keys() {
            let state = self.names.get(key)?;
            if state.waits(request.owner) {
                changes = changes.into_iter().chain([state.changes()]).min();
            } else if !state.knows(request) {
                return None;
            }
        }
        changes
    }

    /// To whom a name was granted since this was last asked.
    pub(crate) fn take_granted(&mut self) -> Vec<Owner> {
        std::mem::take(&mut self.granted)
    }

    /// Forgets what is over, each time the table has doubled: leases that ran out with nobody asking, and abandonment
    /// of long ago.
    fn purge(&mut self, now: BootInstant) {
        const SMALL: usize = 64;
        if self.names.len() < self.purge_at.max(SMALL) {
            return;
        }
        self.names.retain(|_, state| {
            state.tidy(now, &mut self.granted);
            !state.is_free(now)
        });
        self.purge_at = 2 * self.names.len();
    }

    /// How many names have a state.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
