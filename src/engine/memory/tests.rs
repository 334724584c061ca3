//! What the rules don't share with the scripts, or memory with directories: what is forgotten, and how threads wait.
//! All else is in `tests/protocol/corpus` and `tests/conformance`.

use std::thread;
use std::time::Instant;

use super::*;
use crate::base::cancel::Cancel;
use crate::base::claim::{Claim, Mode, Prefer};
use crate::base::clock::tests::ManualClock;
use crate::base::inspection::Wants;
use crate::base::owner::Owner;
use crate::base::token::{Ending, HAND_OVERS, Token};
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

    /// One that wants several names.
    fn of_all(names: &[&str]) -> Self {
        let mut client = Client::new(WRITE);
        client.claim.names = names.iter().map(|name| key(name)).collect();
        client.claim.key = Key::of_all(&client.claim.names);
        client
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

    /// A new one that waits for the name.
    fn waiter(&self, mode: Mode) -> Client {
        let client = Client::new(mode);
        assert_eq!(self.waits(&client), None, "nobody has to wait");
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

    /// Waits as a thread does between two questions.
    fn sleeps(&self, client: &Client, until: &Deadline) {
        self.engine.wait(client.request(), LONGEST_PAUSE, until);
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

#[test]
fn token_after_a_break_is_above_those_that_were_handed_over() {
    let world = World::new();
    let token = world.takes(&Client::new(WRITE));
    assert_eq!(world.breaks("a"), [Some(token.number)]);
    let next = world.takes(&Client::new(WRITE));
    assert!(next.abandoned && next.number > token.number + 2 * HAND_OVERS);
}

#[test]
fn waiter_to_whom_a_broken_lock_was_granted_asks_anew() {
    let world = World::new();
    let holder = world.holder(WRITE);
    let [granted, next] = [world.waiter(WRITE), world.waiter(WRITE)];
    world.ends(&holder);
    assert_eq!(world.breaks("a"), [None]);
    assert_eq!(world.waits(&granted), None);
    let next_holder = world.waits(&next).expect("it is the first now");
    assert!(!next_holder.abandoned, "nobody had begun anything");
    world.ends(&next);
    world.takes(&granted);
}

#[test]
fn who_lost_one_of_its_places_enters_all_lines_anew() {
    let world = World::new();
    let holder = Client::of("b", WRITE);
    world.takes(&holder);
    let late = Client::of_all(&["a", "b"]);
    assert_eq!(world.waits(&late), None);
    // The one name was granted to it, and is broken; for the other it waits.
    assert_eq!(world.breaks("a").len(), 1);
    let other = Client::of_all(&["a", "b"]);
    assert_eq!(world.waits(&other), None);
    let begun = Instant::now();
    world.sleeps(&late, &Deadline::NEVER);
    assert!(begun.elapsed() < TTL / 4, "there was a reason to ask");
    assert_eq!(world.waits(&late), None);
    world.ends(&holder);
    assert_eq!(world.waits(&late), None);
    world.takes(&other);
    world.ends(&other);
    world.takes(&late);
}

#[test]
fn lease_of_another_kind_is_not_adopted() {
    let world = World::new();
    let [reader, writer] = [world.holder(READ), Client::new(WRITE)];
    let (from, last_used) = (&reader.owner, 1);
    let adopted = world.changes(&writer, Change::Adopt { from, last_used });
    assert!(!adopted.is_done());
}

#[test]
fn waiters_are_seen_in_the_order_in_which_they_are_let_in() {
    let wants = |world: &World| -> Vec<_> {
        let seen = world.engine.inspect(&key("a"), &Deadline::NEVER);
        let waiters = seen.expect("memory has no failures").waiters.into_iter();
        waiters.map(|waiter| waiter.wants).collect()
    };
    let (write, read) = (Wants::Exclusive, Wants::Shared);
    let world = World::new();
    let holder = world.holder(WRITE);
    let lines = [WRITE, READ, WRITE, READ].map(|mode| world.waiter(mode));
    assert_eq!(wants(&world), [read, read, write, write]);
    // Now readers are inside, and the first writer is next.
    world.ends(&holder);
    world.takes(&lines[1]);
    let late = world.waiter(READ);
    assert_eq!(wants(&world), [write, read, write]);
    world.gives_up(&late);
    let mut first = Client::new(WRITE);
    first.claim.prefer = Prefer::Writers;
    world.waits(&first);
    assert_eq!(wants(&world), [write, write, write]);
}

/// What a thread does that waits: it asks, and waits until it has the lock. Gives how often it asked.
fn wait_for(world: &World, client: &Client) -> usize {
    for asked in 1.. {
        if world.waits(client).is_some() {
            return asked;
        }
        world.sleeps(client, &Deadline::NEVER);
    }
    unreachable!("it asks on and on")
}

#[test]
fn each_release_wakes_the_one_whose_turn_it_is() {
    let world = World::new();
    let names = ["a", "b", "c"];
    let holder = Client::of_all(&names);
    world.takes(&holder);
    let lines = names.map(|name| [(); 4].map(|()| Client::of(name, WRITE)));
    let all = Client::of_all(&names);
    let asked: usize = thread::scope(|scope| {
        let world = &world;
        let clients = lines.iter().flatten().chain([&all]);
        let threads: Vec<_> = clients
            .map(|client| {
                scope.spawn(move || {
                    let asked = wait_for(world, client);
                    world.ends(client);
                    asked
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(20));
        world.ends(&holder);
        let asked = threads.into_iter().map(|thread| thread.join().unwrap());
        asked.sum()
    });
    // Once in vain at most, and once when they were called: also who wants all of them.
    assert!(asked <= 2 * 13, "{asked}");
}

#[test]
fn release_between_question_and_wait_is_not_missed() {
    let world = World::new();
    let holder = world.holder(WRITE);
    let waiter = world.waiter(WRITE);
    world.ends(&holder);
    let begun = Instant::now();
    world.sleeps(&waiter, &Deadline::NEVER);
    assert!(begun.elapsed() < LONGEST_PAUSE / 2);
    world.takes(&waiter);
}

#[test]
fn woken_wait_goes_on() {
    let world = World::new();
    let holder = world.holder(WRITE);
    let waiter = world.waiter(WRITE);
    let cancel = Cancel::default();
    let until = Deadline::NEVER.or(&cancel);
    thread::scope(|scope| {
        let wait = scope.spawn(|| world.sleeps(&waiter, &until));
        for _ in 0..100 {
            cancel.wake();
            thread::yield_now();
        }
        assert!(!wait.is_finished());
        world.ends(&holder);
        wait.join().expect("it ends");
    });
    world.takes(&waiter);
}
