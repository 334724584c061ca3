//! The rules of names: who holds them, who waits, and who is next. Memory and directories follow them; those of
//! `lua/` are the same, in the language of Redis.
//!
//! They use `base`, what the seam is made of, and `engine::line`. What always holds here: nothing blocks or looks at a
//! clock, and all that one call changes is consistent when it returns. Whoever was granted a name by it is told by the
//! engine. An owner that waits stays in the queue until it leaves, or is found to be gone: it needn't ask again.

mod entry;
mod name;
pub(crate) mod tasks;
mod views;

use self::entry::Step;
pub(crate) use self::entry::{Entry, EntryState, PresenceId};
pub(crate) use self::name::NameState;
use crate::base::sys::collections::HashMap;
use crate::base::{BootInstant, Holder, Key, Owner, Result, Stored, Token};
use crate::engine::{Answer, Change, Grant, Outcome, Release, Request};

/// All names in use.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: HashMap<Key, NameState>,
    step: Step,
    purge_at: usize,
}

/// Where the values are that locks protect.
pub(crate) trait Values {
    fn load(&self, key: &Key) -> Result<Stored>;

    fn store(&mut self, key: &Key, value: &[u8]) -> Result<()>;

    /// What comes with the lock, if it was asked for.
    fn wanted(&self, request: Request<'_>) -> Result<Option<Stored>> {
        let is_wanted = request.claim.has_value;
        is_wanted.then(|| self.load(request.key())).transpose()
    }
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
    /// To be changed at that time.
    pub(crate) fn at(&mut self, now: BootInstant) -> &mut Self {
        self.step.now = now;
        self
    }

    /// Asks once, for all names or none. An owner that `waits` enters all queues at once, or keeps its places, also
    /// when its turn comes in one of them: so of two waiters one is in front of the other wherever they meet, and none
    /// waits for one behind it. One that has lost its place somewhere gives up the others and enters all queues anew.
    /// An owner that doesn't wait leaves.
    pub(crate) fn ask(
        &mut self,
        request: Request<'_>,
        waits: bool,
        values: &impl Values,
    ) -> Result<Answer> {
        self.purge();
        let keys = request.claim.keys();
        let (mut known, mut turns, mut is_broken) = (0, 0, false);
        for key in keys {
            let state = self.names.entry(key.clone()).or_default();
            is_broken |= state.was_broken(request.owner, self.step.now);
            state.tidy(&mut self.step);
            known += usize::from(state.knows(request));
            turns += usize::from(state.is_turn_of(request));
        }
        if is_broken {
            // Those of the names that weren't broken.
            self.release(request, Release::UNKNOWN);
            return Ok(Answer::Broken);
        }
        if turns == keys.len()
            && let Some(token) = self.enter(request)
        {
            return Ok(Answer::Granted(Grant {
                token,
                value: values.wanted(request)?,
                since: self.step.now,
            }));
        }
        let holder = self.enter_queues(request, waits, waits && known == keys.len());
        Ok(Answer::Taken {
            is_queued: waits,
            holder,
        })
    }

    /// An owner that waits stays in all queues, or enters them anew; another leaves. Gives a holder, for the log.
    fn enter_queues(
        &mut self,
        request: Request<'_>,
        waits: bool,
        keeps_places: bool,
    ) -> Option<String> {
        let keys = request.claim.keys();
        for key in keys {
            if let Some(state) = self.names.get_mut(key)
                && !keeps_places
            {
                state.release(request, Release::UNKNOWN, &mut self.step);
            }
        }
        let mut holder = None;
        for key in keys {
            if let Some(state) = self.names.get_mut(key)
                && waits
            {
                state.enter_queue(request, &mut self.step);
                holder = holder.or_else(|| state.holder_for_log(request));
            }
            self.forget_if_free(key);
        }
        holder
    }

    /// Gives the owner, whose turn it is everywhere, all names with one token.
    fn enter(&mut self, request: Request<'_>) -> Option<Token> {
        let tokens = request.claim.keys().iter().filter_map(|key| {
            let state = self.names.get_mut(key)?;
            Some(state.enter(request, &mut self.step))
        });
        let token = tokens.reduce(Token::and)?;
        self.step.used(token.number);
        Some(token)
    }

    /// A name that nobody holds, waits for or has abandoned has no state.
    fn forget_if_free(&mut self, key: &Key) {
        let state = self.names.get(key);
        if state.is_some_and(|state| state.is_free(self.step.now)) {
            self.names.remove(key);
        }
    }

    /// Changes a lease, if all of it is the owner's, and stores the value.
    pub(crate) fn change(
        &mut self,
        request: Request<'_>,
        change: Change<'_>,
        values: &mut impl Values,
    ) -> Result<Outcome> {
        let (outcome, value) = match change {
            Change::Renew => (self.renew(request), None),
            Change::Verify => (self.outcome(self.holds(request), request), None),
            Change::Release(release) => (self.release(request, release), release.value),
            Change::Store(value) => (Outcome::of(self.holds(request)), Some(value)),
            Change::Downgrade { last_used, value } => {
                let done = self.downgrade(request, last_used);
                let is_first = done.is_some_and(|(_, is_first)| is_first);
                let token = done.map(|(token, _)| token);
                (token.into(), value.filter(|_| is_first))
            }
            Change::Adopt { from, last_used } => {
                let token = self.adopt(request, from, last_used);
                let value = values.wanted(request)?;
                (token.map(|token| (token, value)).into(), None)
            }
            Change::GiveAway => (Outcome::DONE, None),
        };
        if let (Outcome::Done(_), Some(value)) = (&outcome, value) {
            values.store(request.key(), value)?;
        }
        Ok(outcome)
    }

    /// Gives it for another ttl.
    pub(crate) fn renew(&mut self, request: Request<'_>) -> Outcome {
        let mut renewed = true;
        for key in request.claim.keys() {
            let state = self.names.get_mut(key);
            match state.and_then(|state| state.lease_mut(request, self.step.now)) {
                Some(lease) => lease.until = self.step.now.plus(request.ttl),
                None => renewed = false,
            }
        }
        self.outcome(renewed, request)
    }

    fn outcome(&self, holds: bool, request: Request<'_>) -> Outcome {
        match holds {
            false if self.was_broken(request) => Outcome::BROKEN,
            holds => Outcome::of(holds),
        }
    }

    fn was_broken(&self, request: Request<'_>) -> bool {
        let mut states = self.states(request);
        states.any(|state| state.was_broken(request.owner, self.step.now))
    }

    /// Whether all of it is the owner's.
    fn holds(&self, request: Request<'_>) -> bool {
        let states = self.states(request);
        let held = states.filter(|state| state.lease(request, self.step.now).is_some());
        held.count() == request.claim.keys().len()
    }

    fn release(&mut self, request: Request<'_>, release: Release<'_>) -> Outcome {
        let mut released = true;
        for key in request.claim.keys() {
            let Some(state) = self.names.get_mut(key) else {
                released = false;
                continue;
            };
            let was_held = state.release(request, release, &mut self.step);
            if state.is_free(self.step.now) {
                self.names.remove(key);
            }
            if was_held && let Some(number) = release.ending.counter() {
                self.step.used(number);
            }
            released &= was_held;
        }
        self.outcome(released, request)
    }

    /// Gives the token, if it was the owner's, and whether that wasn't done before.
    fn downgrade(&mut self, request: Request<'_>, last_used: u64) -> Option<(Token, bool)> {
        let state = self.names.get_mut(request.key())?;
        if state.lease(request, self.step.now).is_some() {
            self.step.used(last_used);
            return Some((state.downgrade(request, &mut self.step), true));
        }
        let claim = request.claim.shared();
        let reads = Request {
            claim: &claim,
            ..request
        };
        // Asked again, it lasts as long as after the first time.
        let until = self.step.now.plus(request.ttl);
        let lease = state.lease_mut(reads, self.step.now)?;
        lease.until = until;
        Some((lease.token()?, false))
    }

    /// Makes a lease of `from` that of the request. `None` when a part of it isn't the other's any more: then nothing
    /// changes.
    fn adopt(&mut self, request: Request<'_>, from: &Owner, last_used: u64) -> Option<Token> {
        let keys = request.claim.keys();
        let theirs = Request {
            owner: from,
            ..request
        };
        let (now, states) = (self.step.now, self.states(request));
        let of_either = states.filter(|state| {
            state.lease(request, now).is_some() || state.lease(theirs, now).is_some()
        });
        if of_either.count() < keys.len() {
            return None;
        }
        self.step.used(last_used);
        let tokens = keys.iter().filter_map(|key| {
            let state = self.names.get_mut(key)?;
            state.adopt(request, from, &mut self.step)
        });
        let token = tokens.reduce(Token::and)?;
        self.step.used(token.number);
        Some(token)
    }

    /// Takes a lock from whoever has it, and lets in the next.
    pub(crate) fn break_lock(&mut self, key: &Key) -> Broken {
        let Some(state) = self.names.get_mut(key) else {
            return Broken::default();
        };
        let now = self.step.now;
        let (ended, was_exclusive) = state.end_all(&mut self.step);
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
        self.forget_if_free(key);
        Broken { holders, owners }
    }

    /// Forgets who has a lock, as a server does that loses its data, or one whose lease has run out, and lets in the
    /// next. Gives who had it.
    #[cfg(feature = "testing")]
    pub(crate) fn forget(&mut self, key: &Key, is_abandoned: bool) -> Vec<Owner> {
        let state = self.names.entry(key.clone()).or_default();
        let (ended, _) = state.end_all(&mut self.step);
        if is_abandoned {
            state.abandon(self.step.now);
        }
        self.forget_if_free(key);
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
    pub(crate) fn take_granted(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.step.granted)
    }

    /// What is known of the names of a claim.
    fn states(&self, request: Request<'_>) -> impl Iterator<Item = &NameState> {
        let keys = request.claim.keys().iter();
        keys.filter_map(|key| self.names.get(key))
    }

    /// Forgets what is over, each time the table has doubled: leases that ran out with nobody asking, and abandonment
    /// of long ago.
    fn purge(&mut self) {
        const SMALL: usize = 64;
        if self.names.len() < self.purge_at.max(SMALL) {
            return;
        }
        self.names.retain(|_, state| {
            state.tidy(&mut self.step);
            !state.is_free(self.step.now)
        });
        self.purge_at = 2 * self.names.len();
    }

    /// How many names have a state.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
