//! All names in use.

mod operations;
mod written;

use std::collections::HashMap;
use std::time::Duration;

use super::broken_owners::BrokenOwners;
use super::counter::Counter;
use super::name_state::NameState;
use crate::base::clock::BootInstant;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::heartbeat::{Acquired, IfTaken, Taken};
use crate::engine::{Outcome, Release, Request};

/// All names in use.
#[derive(Debug, Default)]
pub(in crate::engine) struct Table {
    names: HashMap<Key, NameState>,
    counter: Counter,
    broken: BrokenOwners,
    purge_at: usize,
    /// To whom a name was granted, until they are told.
    granted: Vec<Owner>,
}

impl Table {
    pub(in crate::engine) fn acquire(
        &mut self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        now: BootInstant,
    ) -> Acquired {
        self.purge(now);
        if self.broken.has(request.owner, now) {
            if request.claim.has_many() {
                // Those of the names that weren't broken.
                self.release(request, Release::UNKNOWN, now);
            }
            return Acquired::Broken;
        }
        if request.claim.has_many() {
            return self.acquire_all(request, if_taken, now);
        }
        let state = match self.names.get_mut(request.key()) {
            Some(state) => state,
            None => self.names.entry(request.key().clone()).or_default(),
        };
        state.tidy(now, Some(request.owner), &mut self.granted);
        if state.is_turn_of(request) {
            let token = state.enter(request, now, &mut self.counter);
            return granted(token);
        }
        let was_queued = state.knows(request);
        state.enter_queue(request, if_taken, now, &mut self.granted);
        let (remaining, holder) = (state.remaining(now), holder(state, if_taken));
        self.taken(was_queued, remaining, holder)
    }

    /// Takes all names or none. A waiter enters all queues at once, and keeps its place in each when its turn comes there:
    /// so of two waiters one is in front of the other wherever they meet, and none waits for one behind it. A waiter that has
    /// lost its place somewhere gives up the others and enters all queues anew.
    fn acquire_all(
        &mut self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        now: BootInstant,
    ) -> Acquired {
        let keys = request.claim.keys();
        let (mut known, mut turns) = (0, 0);
        for key in keys {
            let state = self.names.entry(key.clone()).or_default();
            state.tidy(now, Some(request.owner), &mut self.granted);
            known += usize::from(state.knows(request));
            turns += usize::from(state.is_turn_of(request));
        }
        if turns == keys.len()
            && let Some(token) = self.enter_all(request, now)
        {
            return granted(token);
        }
        let was_queued = known == keys.len();
        if !was_queued {
            for key in keys {
                if let Some(state) = self.names.get_mut(key) {
                    state.release(request, Release::UNKNOWN, now, &mut self.granted);
                }
            }
        }
        self.queue_for_all(request, if_taken, now, was_queued)
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

    fn queue_for_all(
        &mut self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        now: BootInstant,
        was_queued: bool,
    ) -> Acquired {
        let (mut remaining, mut whose) = (None, None);
        for key in request.claim.keys() {
            let Some(state) = self.names.get_mut(key) else {
                continue;
            };
            state.enter_queue(request, if_taken, now, &mut self.granted);
            if !state.is_turn_of(request) {
                remaining = remaining.into_iter().chain(state.remaining(now)).min();
                whose = whose.or_else(|| holder(state, if_taken));
            }
            // A name that nobody holds, waits for or has abandoned has no state.
            if state.is_free(now) {
                self.names.remove(key);
            }
        }
        self.taken(was_queued, remaining, whose)
    }

    fn taken(
        &self,
        was_queued: bool,
        remaining: Option<Duration>,
        holder: Option<String>,
    ) -> Acquired {
        Acquired::Taken(Taken {
            remaining,
            counter: self.counter.last_used(),
            was_queued,
            is_handed_on: true,
            // Waiters are notified here, and ask seldom.
            queue_length: 0,
            holder,
        })
    }

    /// Gives it for another ttl, if all of it is the owner's.
    pub(in crate::engine) fn renew(&mut self, request: Request<'_>, now: BootInstant) -> Outcome {
        let mut renewed = true;
        for key in request.claim.keys() {
            let state = self.names.get_mut(key);
            match state.and_then(|state| state.holder(request, now)) {
                Some(holder) => holder.until = now.plus(request.ttl),
                None => renewed = false,
            }
        }
        self.standing(renewed, request.owner, now)
    }

    /// Whether all of it is the owner's, and why not.
    pub(in crate::engine) fn is_owner(
        &mut self,
        request: Request<'_>,
        now: BootInstant,
    ) -> Outcome {
        let holds = self.holds(request, now);
        self.standing(holds, request.owner, now)
    }

    fn standing(&self, holds: bool, owner: &Owner, now: BootInstant) -> Outcome {
        match holds {
            false if self.broken.has(owner, now) => Outcome::BROKEN,
            holds => Outcome::of(holds),
        }
    }

    /// Whether all of it is the owner's.
    pub(in crate::engine) fn holds(&mut self, request: Request<'_>, now: BootInstant) -> bool {
        request.claim.keys().iter().all(|key| {
            let state = self.names.get_mut(key);
            state.is_some_and(|state| state.holder(request, now).is_some())
        })
    }

    /// Ends the lease, if it is the owner's.
    pub(in crate::engine) fn release(
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
        self.standing(released, request.owner, now)
    }

    /// Gives the token, if it was the owner's, and whether that was done before.
    pub(in crate::engine) fn downgrade(
        &mut self,
        request: Request<'_>,
        last_used: u64,
        now: BootInstant,
    ) -> Option<(Token, bool)> {
        let state = self.names.get_mut(request.key())?;
        if state.holder(request, now).is_some() {
            self.counter.used(last_used);
            let token = state.downgrade(request, now, &mut self.counter, &mut self.granted);
            return Some((token, false));
        }
        let claim = request.claim.shared();
        let reads = Request {
            claim: &claim,
            ..request
        };
        let token = state.holder(reads, now)?.token()?;
        Some((token, true))
    }

    pub(in crate::engine) fn free_permits(&self, key: &Key, of: u32, now: BootInstant) -> u32 {
        let state = self.names.get(key);
        state.map_or(of, |state| state.free_permits(of, now))
    }

    /// Whether the owner waits: when it may be its turn although nobody grants it anything; `None` when it may be now.
    pub(in crate::engine) fn changes(&self, request: Request<'_>) -> Option<BootInstant> {
        let mut changes = None;
        for key in request.claim.keys() {
            let state = self.names.get(key)?;
            match state.changes(request.owner) {
                Some(at) => changes = changes.into_iter().chain([at]).min(),
                None if !state.knows(request) => return None,
                None => {}
            }
        }
        changes
    }

    /// To whom a name was granted since this was last asked.
    pub(in crate::engine) fn take_granted(&mut self) -> Vec<Owner> {
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
            state.tidy(now, None, &mut self.granted);
            !state.is_free(now)
        });
        self.purge_at = 2 * self.names.len();
    }

    /// How many names have a state.
    #[cfg(test)]
    pub(in crate::engine) fn len(&self) -> usize {
        self.names.len()
    }
}

/// One of the holders, for the log of a waiter, if that is read.
fn holder(state: &NameState, if_taken: IfTaken<'_>) -> Option<String> {
    let is_wanted =
        matches!(if_taken, IfTaken::Wait { .. }) && log::log_enabled!(log::Level::Debug);
    let whose = is_wanted.then(|| state.whose()).flatten();
    whose.map(|owner| owner.holder().to_owned())
}

/// The table knows nothing of values.
fn granted(token: Token) -> Acquired {
    Acquired::Granted { token, value: None }
}
