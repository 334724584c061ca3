use super::*;
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::clock::tests::ManualClock;
use crate::base::name::Namespace;
use crate::base::owner::Owner;
use crate::base::token::Ending;
use crate::base::token::Token;
use crate::engine::{Done, Release};

mod calls;
mod seen;
mod waits;

// So long that no test comes to the end of a real wait: leases end by a clock that is moved.
const TTL: Duration = Duration::from_secs(100);

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
#[derive(Clone)]
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

    fn preferring(mode: Mode, prefer: Prefer) -> Self {
        let mut client = Client::new(mode);
        client.claim.prefer = prefer;
        client
    }

    /// One that wants several names.
    fn of_all(names: &[&str]) -> Self {
        let mut client = Client::new(WRITE);
        client.claim.names = names.iter().map(|name| key(name)).collect();
        client.claim.key = Key::of_all(&client.claim.names);
        client
    }

    /// The same, as who reads on.
    fn reading(&self) -> Self {
        Client {
            claim: self.claim.shared(),
            ..self.clone()
        }
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

    fn ask(&self, client: &Client, waits: bool) -> Answer {
        let answer = self.engine.ask(client.request(), waits);
        answer.expect("memory has no failures")
    }

    /// Asks, and leaves the queue when the lock is taken.
    fn tries(&self, client: &Client) -> Option<Token> {
        token(&self.ask(client, false))
    }

    /// Asks, and stays in queue when the lock is taken.
    fn waits(&self, client: &Client) -> Option<Token> {
        token(&self.ask(client, true))
    }

    /// Takes what is free.
    fn takes(&self, client: &Client) -> Token {
        self.tries(client).expect("it is free")
    }

    /// A new one that holds the name.
    fn holder(&self, mode: Mode) -> Client {
        let client = Client::new(mode);
        self.takes(&client);
        client
    }

    /// A new one that waits for the name.
    fn waiter(&self, mode: Mode) -> Client {
        let client = Client::new(mode);
        assert_eq!(self.waits(&client), None, "nobody has to wait");
        client
    }

    fn release(&self, client: &Client, last_used: Option<u64>) -> bool {
        let release = ending_after(last_used);
        self.changes(client, Change::Release(release)) == Outcome::DONE
    }

    /// Ends a lease that is held.
    fn ends(&self, client: &Client) {
        assert!(self.release(client, Some(1)), "it isn't held");
    }

    /// Leaves, as one that doesn't know what it has.
    fn gives_up(&self, client: &Client) {
        self.release(client, None);
    }

    fn renews(&self, client: &Client) -> bool {
        self.changes(client, Change::Renew) == Outcome::DONE
    }

    fn is_owner(&self, client: &Client) -> bool {
        self.changes(client, Change::Verify) == Outcome::DONE
    }

    fn changes(&self, client: &Client, change: Change<'_>) -> Outcome {
        let changed = self
            .engine
            .change(client.request(), change, &Deadline::NEVER);
        changed.expect("memory has no failures")
    }

    fn value(&self) -> Option<Vec<u8>> {
        let value = self.engine.load(&key("a"), &Deadline::NEVER);
        value
            .expect("memory has no failures")
            .map(|value| value.to_vec())
    }

    fn passes(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// For how many names something is remembered.
    fn names(&self) -> usize {
        self.engine.state().lock().names.len()
    }
}

fn token_in(outcome: &Outcome) -> Option<Token> {
    match outcome {
        Outcome::Done(Done { token, .. }) => *token,
        Outcome::Gone(_) => None,
    }
}

fn ending_after(last_used: Option<u64>) -> Release<'static> {
    let ending = last_used.map_or(Ending::Unknown, |last_used| Ending::Clean { last_used });
    Release {
        ending,
        ..Release::UNKNOWN
    }
}

fn token(answer: &Answer) -> Option<Token> {
    match answer {
        Answer::Granted(grant) => Some(grant.token),
        Answer::Taken { .. } | Answer::Broken => None,
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
