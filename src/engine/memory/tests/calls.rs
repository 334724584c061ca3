//! What the rules don't share with the scripts, or memory with directories. All else is in `tests/protocol/corpus`.

use super::*;
use crate::base::error::LostReason;
use crate::base::token::HAND_OVERS;
use std::time::Instant;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Keeps what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<(String, LostReason)>>);

impl Revocations for Told {
    fn revoked(&self, owner: &str, _: u64, reason: LostReason) {
        self.0.lock().push((owner.to_owned(), reason));
    }
}

impl World {
    /// Gives the tokens of those whom it took the lock from.
    fn breaks(&self, name: &str) -> Vec<Option<u64>> {
        let holders = self.engine.break_lock(&key(name), &Deadline::NEVER);
        let holders = holders.expect("memory has no failures");
        holders.into_iter().map(|holder| holder.token).collect()
    }

    fn adopts(&self, from: &Client, by: &Client, last_used: u64) -> Option<Token> {
        let from = &from.owner;
        token_in(&self.changes(by, Change::Adopt { from, last_used }))
    }
}

#[test]
fn value_is_stored_by_its_owner_only() {
    let world = World::new();
    let [owner, other] = [world.holder(WRITE), Client::new(WRITE)];
    assert_eq!(
        world.changes(&other, Change::Store(b"no")),
        Outcome::NOT_OWNER
    );
    assert_eq!(world.value(), None);
    assert_eq!(world.changes(&owner, Change::Store(b"1")), Outcome::DONE);
    assert_eq!(world.value().as_deref(), Some(&b"1"[..]));
    let release = |client: &Client, value| {
        let release = Release {
            value: Some(value),
            ..ending_after(Some(1))
        };
        world.changes(client, Change::Release(release))
    };
    assert_eq!(release(&other, b"no"), Outcome::NOT_OWNER);
    assert_eq!(world.value().as_deref(), Some(&b"1"[..]));
    assert_eq!(release(&owner, b"2"), Outcome::DONE);
    assert_eq!(release(&owner, b"no"), Outcome::NOT_OWNER);
    assert_eq!(world.value().as_deref(), Some(&b"2"[..]));
    let late = world.holder(WRITE);
    world.passes(TTL);
    assert_eq!(
        world.changes(&late, Change::Store(b"no")),
        Outcome::NOT_OWNER
    );
    assert_eq!(release(&late, b"no"), Outcome::NOT_OWNER);
    let downgrade = |value| Change::Downgrade {
        last_used: 1,
        value: Some(value),
    };
    assert_eq!(world.changes(&late, downgrade(b"no")), Outcome::NOT_OWNER);
    assert_eq!(world.value().as_deref(), Some(&b"2"[..]));
    world.engine.remove(&key("a"), &Deadline::NEVER).unwrap();
    assert_eq!(world.value(), None);
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
        assert!(world.value().is_some());
    }
}

#[test]
fn what_nobody_asks_for_any_more_is_forgotten_in_time() {
    for (mode, after) in [(READ, TTL), (permits(1, 1), TTL), (WRITE, TTL + DAY)] {
        let world = World::new();
        for n in 0..100 {
            world.takes(&Client::of(&n.to_string(), mode));
        }
        world.passes(after);
        for n in 100..200 {
            world.takes(&Client::of(&n.to_string(), mode));
        }
        assert!(world.names() <= 100, "{mode:?}");
    }
}

#[test]
fn broken_lock_is_free_abandoned_and_has_a_larger_token() {
    let world = World::new();
    let holder = Client::new(WRITE);
    let token = world.takes(&holder);
    let told = Arc::new(Told::default());
    let receiver: Weak<dyn Revocations> = Arc::<Told>::downgrade(&told);
    world.engine.tell_revocations(receiver);
    assert_eq!(world.breaks("a"), [Some(token.number)]);
    let owner = holder.owner.as_str().to_owned();
    assert_eq!(*told.0.lock(), [(owner, LostReason::Broken)]);
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
    let broken = world.engine.break_lock(&key("a"), &Deadline::NEVER);
    assert_eq!(broken.expect("memory has no failures").len(), 1);
    let other = Client::of_all(&["a", "b"]);
    assert_eq!(world.waits(&other), None);
    let begun = Instant::now();
    world
        .engine
        .wait(late.request(), LONGEST_PAUSE, &Deadline::NEVER);
    assert!(begun.elapsed() < TTL / 4, "there was a reason to ask");
    assert_eq!(world.waits(&late), None);
    world.ends(&holder);
    assert_eq!(world.waits(&late), None);
    world.takes(&other);
    world.ends(&other);
    world.takes(&late);
}

#[test]
fn lease_that_ran_out_or_is_of_another_kind_is_not_adopted() {
    let world = World::new();
    let [first, second] = [world.holder(READ), Client::new(WRITE)];
    assert_eq!(world.adopts(&first, &second, 1), None);
    world.passes(TTL);
    assert_eq!(world.adopts(&first, &second.reading(), 1), None);
}

#[test]
fn dead_receivers_are_forgotten() {
    let world = World::new();
    for _ in 0..10 {
        let told: Arc<dyn Revocations> = Arc::new(Told::default());
        world.engine.tell_revocations(Arc::downgrade(&told));
    }
    let receivers = format!("{:?}", world.engine.memory.receivers);
    assert!(receivers.contains("count: 1"), "{receivers}");
    world.holder(WRITE);
    assert_eq!(world.breaks("a").len(), 1);
}
