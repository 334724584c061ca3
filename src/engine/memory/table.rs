//! All names in use, and what they protect.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Condvar;

use super::counter::Counter;
use super::entry::Entry;
use crate::base::clock::BootInstant;
use crate::base::name::Key;
use crate::base::token::Token;
use crate::base::value::Stored;
use crate::engine::heartbeat::{Acquired, IfTaken, Taken};
use crate::engine::{Release, Request};

/// All names in use, and what they protect.
#[derive(Debug, Default)]
pub(super) struct Table {
    names: HashMap<Key, Entry>,
    pub(super) values: HashMap<Key, Arc<[u8]>>,
    counter: Counter,
    purge_at: usize,
}

impl Table {
    pub(super) fn acquire(
        &mut self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        now: BootInstant,
    ) -> Acquired {
        self.purge(now);
        if request.claim.has_many() {
            return self.acquire_all(request, if_taken, now);
        }
        let entry = match self.names.get_mut(request.key()) {
            Some(entry) => entry,
            None => self.names.entry(request.key().clone()).or_default(),
        };
        entry.tidy(now, Some(request.owner));
        if entry.is_turn_of(request) {
            let token = entry.enter(request, now, &mut self.counter);
            return self.granted(request, token);
        }
        let was_queued = entry.knows(request);
        entry.stand(request, if_taken, now, &Arc::default());
        Acquired::Taken(Taken {
            remaining: entry.remaining(now),
            counter: self.counter.last_used(),
            was_queued,
            is_handed_on: true,
            // Those that wait are woken, and ask seldom.
            queue_length: 0,
            holder: holder(entry, if_taken),
        })
    }

    /// All or none. Whoever waits enters all lines at once, and the place is its own in each when its turn comes: so
    /// of two that wait, one is in front of the other wherever they meet, and none waits for one behind it. Who has
    /// lost its place somewhere gives up the others and enters all lines anew.
    fn acquire_all(
        &mut self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        now: BootInstant,
    ) -> Acquired {
        let keys = request.claim.keys();
        let (mut known, mut turns) = (0, 0);
        for key in keys {
            let entry = self.names.entry(key.clone()).or_default();
            entry.tidy(now, Some(request.owner));
            known += usize::from(entry.knows(request));
            turns += usize::from(entry.is_turn_of(request));
        }
        if turns == keys.len() {
            let tokens = keys.iter().filter_map(|key| {
                let entry = self.names.get_mut(key)?;
                Some(entry.enter(request, now, &mut self.counter))
            });
            if let Some(token) = tokens.reduce(Token::and) {
                self.counter.used(token.number);
                return self.granted(request, token);
            }
        }
        let was_queued = known == keys.len();
        let (mut remaining, mut whose) = (None, None);
        let bell = Arc::<Condvar>::default();
        for key in keys {
            let Some(entry) = self.names.get_mut(key) else {
                continue;
            };
            if !was_queued {
                entry.release(request, Release::UNKNOWN, now);
            }
            entry.stand(request, if_taken, now, &bell);
            if !entry.is_turn_of(request) {
                remaining = remaining.into_iter().chain(entry.remaining(now)).min();
                whose = whose.or_else(|| holder(entry, if_taken));
            }
            // A name that nobody holds, waits for or has abandoned has no entry.
            if entry.is_free(now) {
                self.names.remove(key);
            }
        }
        Acquired::Taken(Taken {
            remaining,
            counter: self.counter.last_used(),
            was_queued,
            is_handed_on: true,
            // Those that wait are woken, and ask seldom.
            queue_length: 0,
            holder: whose,
        })
    }

    fn granted(&self, request: Request<'_>, token: Token) -> Acquired {
        let value = || self.value(request.key());
        Acquired::Granted {
            token,
            value: request.claim.valued.then(value),
        }
    }

    /// Whether all of it is the owner's, now for another ttl.
    pub(super) fn renew(&mut self, request: Request<'_>, now: BootInstant) -> bool {
        let mut renewed = true;
        for key in request.claim.keys() {
            let entry = self.names.get_mut(key);
            match entry.and_then(|entry| entry.holder(request, now)) {
                Some(holder) => holder.until = now.plus(request.ttl),
                None => renewed = false,
            }
        }
        renewed
    }

    /// Whether all of it is the owner's.
    pub(super) fn holds(&mut self, request: Request<'_>, now: BootInstant) -> bool {
        request.claim.keys().iter().all(|key| {
            let entry = self.names.get_mut(key);
            entry.is_some_and(|entry| entry.holder(request, now).is_some())
        })
    }

    /// Ends the lease, and says whether all of it was the owner's.
    pub(super) fn release(
        &mut self,
        request: Request<'_>,
        release: Release<'_>,
        now: BootInstant,
    ) -> bool {
        let mut released = true;
        for key in request.claim.keys() {
            let Some(entry) = self.names.get_mut(key) else {
                released = false;
                continue;
            };
            let was_held = entry.release(request, release, now);
            if entry.is_free(now) {
                self.names.remove(key);
            }
            if was_held && let Some(number) = release.ending.counter() {
                self.counter.used(number);
            }
            released &= was_held;
        }
        released
    }

    /// Gives the token, if it was the owner's, and whether that was done before.
    pub(super) fn downgrade(
        &mut self,
        request: Request<'_>,
        last_used: u64,
        now: BootInstant,
    ) -> Option<(Token, bool)> {
        let entry = self.names.get_mut(request.key())?;
        if entry.holder(request, now).is_some() {
            self.counter.used(last_used);
            let token = entry.downgrade(request, now, &mut self.counter);
            return Some((token, false));
        }
        let claim = request.claim.shared();
        let reads = Request {
            claim: &claim,
            ..request
        };
        let token = entry.holder(reads, now)?.token()?;
        Some((token, true))
    }

    pub(super) fn free_permits(&self, key: &Key, of: u32, now: BootInstant) -> u32 {
        let entry = self.names.get(key);
        entry.map_or(of, |entry| entry.free_permits(of, now))
    }

    pub(super) fn value(&self, key: &Key) -> Stored {
        self.values.get(key).cloned()
    }

    pub(super) fn set_value(&mut self, key: &Key, value: &[u8]) {
        self.values.insert(key.clone(), value.into());
    }

    /// What rings when it may be the owner's turn, and when it may be without; `None` when it may be now.
    pub(super) fn waits(&self, request: Request<'_>) -> Option<(Arc<Condvar>, BootInstant)> {
        let (mut bell, mut changes) = (None, BootInstant::MAX);
        for key in request.claim.keys() {
            let entry = self.names.get(key)?;
            if let Some((rings, at)) = entry.waits(request.owner) {
                (bell, changes) = (Some(rings), changes.min(at));
            } else if !entry.knows(request) {
                return None;
            }
        }
        bell.map(|bell| (bell, changes))
    }

    /// Forgets what is over, each time the table has doubled: leases that ran out with nobody asking, and what was
    /// abandoned long ago.
    fn purge(&mut self, now: BootInstant) {
        const SMALL: usize = 64;
        if self.names.len() < self.purge_at.max(SMALL) {
            return;
        }
        self.names.retain(|_, entry| {
            entry.tidy(now, None);
            !entry.is_free(now)
        });
        self.purge_at = 2 * self.names.len();
    }

    /// For how many names there is an entry.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

/// Who has it, for the log of one that waits, if anybody reads that.
fn holder(entry: &Entry, if_taken: IfTaken<'_>) -> Option<String> {
    let is_wanted =
        matches!(if_taken, IfTaken::Wait { .. }) && log::log_enabled!(log::Level::Debug);
    let whose = is_wanted.then(|| entry.whose()).flatten();
    whose.map(|owner| owner.holder().to_owned())
}
