//! What is forgotten: the rules that memory shares with the scripts are in `tests/protocol/corpus` and
//! `tests/conformance`.

use super::*;
use crate::base::claim::{Claim, Mode};
use crate::base::clock::tests::ManualClock;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::engine::Release;

// So long that no test comes to the end of a real wait: leases end by a clock that is moved.
const TTL: Duration = Duration::from_secs(100);
const DAY: Duration = Duration::from_secs(24 * 3600);

const WRITE: Mode = Mode::Exclusive;
const READ: Mode = Mode::Shared;

fn permits(count: u32, of: u32) -> Mode {
    Mode::Permits { count, of }
}

/// An engine of its own, and the clock by which its leases end.
struct World {
    engine: MemoryEngine,
    clock: Arc<ManualClock>,
}

/// Somebody who wants a lock.
struct Client {
    claim: Claim,
    owner: Owner,
}

/// The key under which all names of a test are.
fn key(name: &str) -> Key {
    Key::new(&Namespace::new("test").expect("it is valid"), name).expect("it is valid")
}

impl Client {
    fn new(mode: Mode) -> Self {
        Client::of("a", mode)
    }

    fn of(name: &str, mode: Mode) -> Self {
        let claim = Claim {
            mode,
            ..Claim::exclusive("test", name)
        };
        let owner = Owner::new();
        Client { claim, owner }
    }

    fn request(&self) -> Request<'_> {
        Request {
            claim: &self.claim,
            owner: &self.owner,
            ttl: TTL,
            granted: None,
        }
    }
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let engine = MemoryEngine::private(ENDPOINT, clock.clone());
        World { engine, clock }
    }

    fn ask(&self, client: &Client, waits: bool) -> Option<Token> {
        let answer = self.engine.ask(client.request(), waits);
        match answer.expect("memory has no failures") {
            Answer::Granted(grant) => Some(grant.token),
            Answer::Taken { .. } | Answer::Broken => None,
        }
    }

    /// Asks, and stays in queue when the lock is taken.
    fn waits(&self, client: &Client) -> Option<Token> {
        self.ask(client, true)
    }

    /// Takes what is free.
    fn takes(&self, client: &Client) -> Token {
        self.ask(client, false).expect("it is free")
    }

    /// A new one that holds the name.
    fn holder(&self, mode: Mode) -> Client {
        let client = Client::new(mode);
        self.takes(&client);
        client
    }

    /// Ends a lease that is held.
    fn ends(&self, client: &Client) {
        let release = Release {
            ending: Ending::Clean { last_used: 1 },
            ..Release::UNKNOWN
        };
        let released = self.changes(client, Change::Release(release));
        assert_eq!(released, Outcome::DONE, "it isn't held");
    }

    /// Leaves, as one that doesn't know what it has.
    fn gives_up(&self, client: &Client) {
        self.changes(client, Change::Release(Release::UNKNOWN));
    }

    fn changes(&self, client: &Client, change: Change<'_>) -> Outcome {
        let changed = self
            .engine
            .change(client.request(), change, &Deadline::NEVER);
        changed.expect("memory has no failures")
    }

    /// Gives the tokens of those whom it took the lock from.
    fn breaks(&self, name: &str) -> Vec<Option<u64>> {
        let holders = self.engine.break_lock(&key(name), &Deadline::NEVER);
        let holders = holders.expect("memory has no failures");
        holders.into_iter().map(|holder| holder.token).collect()
    }

    /// For how many names something is remembered.
    fn names(&self) -> usize {
        self.engine.state().lock().names.len()
    }
}

#[test]
fn memory_is_gone_with_its_last_user() {
    let memories = Memories::default();
    let [first, second] = [(); 2].map(|()| memories.of("gone"));
    assert!(Arc::ptr_eq(&first, &second));
    assert!(!Arc::ptr_eq(&first, &memories.of("other")));
    let weak = Arc::downgrade(&first);
    drop((first, second));
    assert!(weak.upgrade().is_none());
}

#[test]
fn free_names_are_forgotten_and_their_values_are_not() {
    let world = World::new();
    for mode in [WRITE, READ, permits(1, 2)] {
        let client = world.holder(mode);
        let waiter = Client::new(WRITE);
        world.waits(&waiter);
        assert_eq!(world.changes(&client, Change::Store(b"1")), Outcome::DONE);
        world.ends(&client);
        assert_eq!(world.names(), 1);
        world.gives_up(&waiter);
        assert_eq!(world.names(), 0);
        let value = world.engine.load(&key("a"), &Deadline::NEVER);
        assert!(value.expect("memory has no failures").is_some());
    }
}

#[test]
fn what_nobody_asks_for_any_more_is_forgotten_in_time() {
    for (mode, after) in [(READ, TTL), (permits(1, 1), TTL), (WRITE, TTL + DAY)] {
        let world = World::new();
        for n in 0..100 {
            world.takes(&Client::of(&n.to_string(), mode));
        }
        world.clock.advance(after);
        for n in 100..200 {
            world.takes(&Client::of(&n.to_string(), mode));
        }
        assert!(world.names() <= 100, "{mode:?}");
    }
}

/// Hears of no break.
#[derive(Debug)]
struct Deaf;

impl Revocations for Deaf {
    fn revoked(&self, _: &str, _: u64, _: LostReason) {}
}

#[test]
fn dead_receivers_are_forgotten() {
    let world = World::new();
    for _ in 0..10 {
        let told: Arc<dyn Revocations> = Arc::new(Deaf);
        world.engine.tell_revocations(Arc::downgrade(&told));
    }
    let receivers = format!("{:?}", world.engine.memory.receivers);
    assert!(receivers.contains("count: 1"), "{receivers}");
    world.holder(WRITE);
    assert_eq!(world.breaks("a").len(), 1);
}
