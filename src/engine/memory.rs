//! Locks of this process: for tests, and for programs that may do without the others.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{Acquired, Engine, Failed, IfTaken, Released, Request};
use crate::clock::{BootClock, BootInstant, Clock, Deadline};
use crate::error::Result;
use crate::fence::{Token, host_micros};
use crate::lease::Owner;
use crate::name::Key;
use crate::per_process::{Fresh, PerProcess};

/// How long an abandoned lock is remembered.
const MEMORY: Duration = Duration::from_secs(24 * 3600);

/// A pause is at most this long by the options' bounds; a longer one would only be cut.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Every `memory:` locker of the process shares this one, as they would share a server.
#[derive(Debug)]
pub(crate) struct MemoryEngine {
    clock: Arc<dyn Clock>,
    /// A child's memory is another.
    store: PerProcess<Store>,
}

#[derive(Debug, Default)]
struct Store {
    table: Mutex<Table>,
    released: Condvar,
}

impl Fresh for Store {
    fn fresh(&self) -> Self {
        Store::default()
    }
}

#[derive(Debug, Default)]
struct Table {
    leases: HashMap<Key, Entry>,
    /// One counter for all names: a name that nobody holds needs no entry.
    counter: u64,
    purge_at: usize,
}

/// A lease, which may have run out: then its holder has abandoned it.
#[derive(Debug)]
struct Entry {
    owner: Owner,
    token: Token,
    expires: BootInstant,
}

impl MemoryEngine {
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: LazyLock<Arc<MemoryEngine>> =
            LazyLock::new(|| Arc::new(MemoryEngine::new(Arc::new(BootClock))));
        SHARED.clone()
    }

    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        MemoryEngine {
            clock,
            store: PerProcess::new(Store::default()),
        }
    }
}

impl MemoryEngine {
    fn of(&self, request: Request<'_>) -> &Store {
        self.store.get(request.owner.process())
    }
}

impl Engine for MemoryEngine {
    fn acquire(
        &self,
        request: Request<'_>,
        _if_taken: IfTaken<'_>,
        _deadline: &Deadline,
    ) -> Result<Acquired, Failed> {
        let now = self.clock.now();
        let mut table = self.of(request).table.lock();
        let abandoned = match table.leases.get_mut(request.key) {
            Some(entry) if entry.expires <= now => true,
            Some(entry) if entry.owner == *request.owner => {
                entry.expires = now.plus(request.ttl);
                return Ok(Acquired::Granted(entry.token));
            }
            Some(entry) => {
                return Ok(Acquired::Taken {
                    remaining: Some(entry.expires.since(now)),
                    counter: entry.token.number,
                    stood: false,
                });
            }
            None => false,
        };
        Ok(Acquired::Granted(table.grant(request, abandoned, now)))
    }

    fn renew(&self, request: Request<'_>, _deadline: &Deadline) -> Result<bool> {
        let now = self.clock.now();
        let mut table = self.of(request).table.lock();
        let Some(entry) = table.held(request, now) else {
            return Ok(false);
        };
        entry.expires = now.plus(request.ttl);
        Ok(true)
    }

    fn release(
        &self,
        request: Request<'_>,
        last_used: Option<u64>,
        _deadline: &Deadline,
    ) -> Result<Released> {
        let store = self.of(request);
        let mut table = store.table.lock();
        let now = self.clock.now();
        let Some(entry) = table.held(request, now) else {
            return Ok(Released::NotOwner);
        };
        if last_used.is_none() && entry.token.abandoned {
            // Nobody was told: the next holder finds it as this one did.
            entry.expires = now;
        } else {
            table.leases.remove(request.key);
        }
        table.counter = table.counter.max(last_used.map_or(0, Token::released));
        store.released.notify_all();
        Ok(Released::Done)
    }

    fn is_owner(&self, request: Request<'_>, _deadline: &Deadline) -> Result<bool> {
        let mut table = self.of(request).table.lock();
        Ok(table.held(request, self.clock.now()).is_some())
    }

    fn wait(&self, key: &Key, timeout: Duration) {
        // The caller's pauses are short.
        let until = Instant::now() + timeout.min(LONGEST_PAUSE);
        let store = self.store.get(std::process::id());
        let mut table = store.table.lock();
        while table
            .leases
            .get(key)
            .is_some_and(|entry| self.clock.now() < entry.expires)
        {
            // A release wakes the waiters of all names.
            if store.released.wait_until(&mut table, until).timed_out() {
                return;
            }
        }
    }

    fn place(&self) -> &str {
        "memory:"
    }
}

impl Table {
    fn held(&mut self, request: Request<'_>, now: BootInstant) -> Option<&mut Entry> {
        let entry = self.leases.get_mut(request.key)?;
        (entry.owner == *request.owner && now < entry.expires).then_some(entry)
    }

    fn grant(&mut self, request: Request<'_>, abandoned: bool, now: BootInstant) -> Token {
        self.purge(now);
        // The counter may be odd here: it belongs to all names, and only an entry tells of abandonment.
        let stored = if abandoned {
            self.counter | 1
        } else {
            (self.counter + 1) & !1
        };
        let token = Token::next(stored, host_micros());
        self.counter = token.number;
        let entry = Entry {
            owner: request.owner.clone(),
            token,
            expires: now.plus(request.ttl),
        };
        self.leases.insert(request.key.clone(), entry);
        token
    }

    /// Forgets what was abandoned long ago, each time the table has doubled.
    fn purge(&mut self, now: BootInstant) {
        const SMALL: usize = 64;
        if self.leases.len() < self.purge_at.max(SMALL) {
            return;
        }
        self.leases
            .retain(|_, entry| now < entry.expires.plus(MEMORY));
        self.purge_at = 2 * self.leases.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::tests::ManualClock;
    use crate::name::Namespace;

    const TTL: Duration = Duration::from_secs(1);

    fn acquire(engine: &MemoryEngine, name: &str, owner: &Owner) -> Acquired {
        let key = Key::new(&Namespace::new("test").unwrap(), name).unwrap();
        let request = Request {
            key: &key,
            owner,
            ttl: TTL,
        };
        engine
            .acquire(request, IfTaken::Leave, &Deadline::NEVER)
            .unwrap()
    }

    #[test]
    fn repeated_acquire_gets_the_same_token() {
        let engine = MemoryEngine::new(ManualClock::new());
        let owner = Owner::new();
        let granted = acquire(&engine, "a", &owner);
        assert_eq!(acquire(&engine, "a", &owner), granted);
        let Acquired::Granted(Token { number, .. }) = granted else {
            panic!("taken")
        };
        let taken = Acquired::Taken {
            remaining: Some(TTL),
            counter: number,
            stood: false,
        };
        assert_eq!(acquire(&engine, "a", &Owner::new()), taken);
    }

    #[test]
    fn acquire_that_is_called_back_leaves_abandonment_to_the_next() {
        let clock = ManualClock::new();
        let engine = MemoryEngine::new(clock.clone());
        acquire(&engine, "a", &Owner::new());
        clock.advance(2 * TTL);
        for _ in 0..3 {
            let owner = Owner::new();
            let Acquired::Granted(token) = acquire(&engine, "a", &owner) else {
                panic!("taken")
            };
            assert!(token.abandoned);
            let key = Key::new(&Namespace::new("test").unwrap(), "a").unwrap();
            let request = Request {
                key: &key,
                owner: &owner,
                ttl: TTL,
            };
            engine.release(request, None, &Deadline::NEVER).unwrap();
        }
    }

    #[test]
    fn abandoned_locks_are_forgotten_after_a_day() {
        let clock = ManualClock::new();
        let engine = MemoryEngine::new(clock.clone());
        for n in 0..100 {
            acquire(&engine, &n.to_string(), &Owner::new());
        }
        clock.advance(MEMORY + 2 * TTL);
        for n in 100..200 {
            acquire(&engine, &n.to_string(), &Owner::new());
        }
        assert!(
            engine
                .store
                .get(std::process::id())
                .table
                .lock()
                .leases
                .len()
                < 150
        );
    }
}
