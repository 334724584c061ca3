//! What operators see and do, and how a lease passes to another process.

use super::*;
use crate::base::error::LostReason;
use crate::base::inspection::{Inspection, LockState, Wants};
use crate::base::token::HAND_OVERS;
use crate::engine::Cursor;

const SECOND: Duration = Duration::from_secs(1);

/// Keeps what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<(String, LostReason)>>);

impl Revocations for Told {
    fn revoked(&self, owner: &str, _: u64, reason: LostReason) {
        self.0.lock().push((owner.to_owned(), reason));
    }
}

impl World {
    fn sees(&self) -> Inspection {
        self.sees_of("a")
    }

    fn sees_of(&self, name: &str) -> Inspection {
        let seen = self.engine.inspect(&key(name), &Deadline::NEVER);
        seen.expect("memory has no failures")
    }

    fn lists(&self, prefix: &str) -> Vec<String> {
        let namespace = Namespace::new("test").expect("it is valid");
        let page = self
            .engine
            .list(&namespace, prefix, Cursor::default(), &Deadline::NEVER);
        let mut names = page.expect("memory has no failures").names;
        names.sort();
        names
    }

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

    fn renewal(&self, client: &Client) -> Outcome {
        self.changes(client, Change::Renew)
    }
}

#[test]
fn holders_are_seen_in_the_order_in_which_they_came() {
    let world = World::new();
    let first = world.takes(&Client::new(permits(1, 5)));
    world.passes(SECOND);
    let dropped = world.holder(permits(1, 5));
    let last = world.takes(&Client::new(permits(2, 5)));
    world.ends(&dropped);
    world.passes(SECOND);
    let seen = world.sees();
    let (taken, of) = (3, Some(5));
    assert_eq!(seen.state, LockState::Permits { taken, of });
    let told: Vec<_> = seen
        .holders
        .iter()
        .map(|one| (one.token, one.permits, one.held_for, one.remaining))
        .collect();
    let left = |age: u32| (Some(age * SECOND), Some(TTL - age * SECOND));
    assert_eq!(
        told,
        [
            (Some(first.number), 1, left(2).0, left(2).1),
            (Some(last.number), 2, left(1).0, left(1).1)
        ]
    );
    assert_eq!(seen.last_token, Some(last.number));
}

#[test]
fn renewed_lease_is_held_since_it_began() {
    let world = World::new();
    let client = world.holder(WRITE);
    world.passes(SECOND);
    assert!(world.renews(&client));
    world.takes(&client);
    world.passes(SECOND);
    let holder = &world.sees().holders[0];
    assert_eq!(holder.held_for, Some(2 * SECOND));
    assert_eq!(holder.remaining, Some(TTL - SECOND));
}

#[test]
fn waiters_are_seen_in_the_order_in_which_they_are_let_in() {
    let wants = |world: &World| -> Vec<_> {
        let waiters = world.sees().waiters.into_iter();
        waiters.map(|waiter| waiter.wants).collect()
    };
    let (write, read) = (Wants::Exclusive, Wants::Shared);
    let world = World::new();
    let holder = world.holder(WRITE);
    let lines = [WRITE, READ, WRITE, READ].map(|mode| world.waiter(mode));
    assert_eq!(wants(&world), [read, read, write, write]);
    // Now readers are inside, and the first writer is next.
    world.ends(&holder);
    world.takes(&lines[1].clone());
    let late = world.waiter(READ);
    assert_eq!(wants(&world), [write, read, write]);
    world.gives_up(&late);
    let first = Client::preferring(WRITE, Prefer::Writers);
    world.waits(&first);
    assert_eq!(wants(&world), [write, write, write]);
}

#[test]
fn waiter_is_seen_with_its_time() {
    let world = World::new();
    world.holder(WRITE);
    let waiter = world.waiter(permits(2, 3));
    world.passes(SECOND);
    world.waits(&waiter);
    world.passes(SECOND);
    let seen = &world.sees().waiters[0];
    assert_eq!(seen.wants, Wants::Permits { count: 2 });
    assert_eq!(seen.waited_for, Some(2 * SECOND));
}

#[test]
fn look_at_a_name_changes_nothing() {
    let world = World::new();
    let dead = world.holder(WRITE);
    world.waiter(WRITE);
    world.passes(TTL);
    let before = format!("{:?}", world.engine.state().lock());
    assert_eq!(world.sees().state, LockState::Free);
    assert_eq!(world.sees_of("unknown").state, LockState::Free);
    assert_eq!(world.lists(""), [""; 0]);
    assert_eq!(format!("{:?}", world.engine.state().lock()), before);
    assert!(!world.is_owner(&dead));
}

#[test]
fn kept_lock_is_seen_as_such() {
    let world = World::new();
    let client = world.holder(WRITE);
    let release = Release {
        keep: SECOND,
        ..ending_after(Some(1))
    };
    let released = world.changes(&client, Change::Release(release));
    assert_eq!(released, Outcome::DONE);
    let remaining = Some(SECOND);
    assert_eq!(world.sees().state, LockState::Kept { remaining });
    assert!(world.sees().holders.is_empty());
    assert_eq!(world.lists(""), ["a"]);
    // Nobody had it, and nobody abandoned it.
    assert_eq!(world.breaks("a"), []);
    assert!(!world.takes(&Client::new(WRITE)).abandoned);
}

#[test]
fn list_has_the_names_in_use_with_a_prefix() {
    let world = World::new();
    for name in ["a*1", "a*2", "ab", "b"] {
        world.takes(&Client::of(name, WRITE));
    }
    world.passes(TTL);
    for name in ["a*1", "ab"] {
        world.takes(&Client::of(name, READ));
    }
    assert_eq!(world.lists(""), ["a*1", "ab"]);
    assert_eq!(world.lists("a*"), ["a*1"]);
    assert_eq!(world.lists("b"), [""; 0]);
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
fn broken_owner_is_told_so_for_as_long_as_its_lease_had_left() {
    let world = World::new();
    let holder = world.holder(WRITE);
    world.passes(TTL / 2);
    world.breaks("a");
    assert_eq!(world.renewal(&holder), Outcome::BROKEN);
    assert!(!world.is_owner(&holder));
    let released = world.changes(&holder, Change::Release(Release::UNKNOWN));
    assert_eq!(released, Outcome::BROKEN);
    // Nor does a question that comes late take it again, or enter the queue.
    for waits in [false, true] {
        assert_eq!(world.ask(&holder, waits), Answer::Broken);
    }
    assert_eq!(world.sees().state, LockState::Free);
    assert!(world.sees().waiters.is_empty());
    world.passes(TTL / 2);
    assert_eq!(world.renewal(&holder), Outcome::NOT_OWNER);
    world.takes(&holder);
}

#[test]
fn break_ends_all_leases_and_lets_in_the_next() {
    for mode in [READ, permits(1, 3)] {
        let world = World::new();
        let holders = [world.holder(mode), world.holder(mode)];
        let waiters = [world.waiter(WRITE), world.waiter(WRITE)];
        assert_eq!(world.breaks("a").len(), 2);
        for holder in &holders {
            assert_eq!(world.renewal(holder), Outcome::BROKEN);
        }
        // What those that share were doing is nobody's concern.
        assert_eq!(world.waits(&waiters[1]), None);
        assert!(!world.takes(&waiters[0]).abandoned);
        assert_eq!(world.names(), 1);
    }
}

#[test]
fn break_of_one_of_several_names_ends_the_whole_lease() {
    let world = World::new();
    let both = Client::of_all(&["a", "b"]);
    let token = world.takes(&both);
    assert_eq!(world.breaks("a").len(), 1);
    assert_eq!(world.renewal(&both), Outcome::BROKEN);
    assert!(world.takes(&Client::new(WRITE)).number > token.number);
    // Its guard releases the others.
    assert_eq!(world.tries(&Client::of("b", WRITE)), None);
    let released = world.changes(&both, Change::Release(ending_after(Some(1))));
    assert_eq!(released, Outcome::BROKEN);
    world.takes(&Client::of("b", WRITE));
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
fn owner_of_several_names_that_asks_after_a_break_has_none_of_them() {
    let world = World::new();
    let both = Client::of_all(&["a", "b"]);
    world.takes(&both);
    assert_eq!(world.breaks("a").len(), 1);
    assert_eq!(world.ask(&both, true), Answer::Broken);
    world.takes(&Client::of("a", WRITE));
    world.takes(&Client::of("b", WRITE));
}

#[test]
fn break_of_a_free_lock_does_nothing() {
    let world = World::new();
    assert_eq!(world.breaks("a"), []);
    assert_eq!(world.names(), 0);
    let dead = world.holder(WRITE);
    world.passes(TTL);
    assert_eq!(world.breaks("a"), []);
    assert_eq!(world.renewal(&dead), Outcome::NOT_OWNER);
    assert!(world.takes(&Client::new(WRITE)).abandoned);
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

#[test]
fn adopted_lease_is_that_of_the_new_owner() {
    for mode in [WRITE, READ, permits(2, 3)] {
        let world = World::new();
        let [first, second, third] = [(); 3].map(|()| Client::new(mode));
        let last_used = world.takes(&first).number + 100;
        world.passes(TTL / 2);
        let token = world.adopts(&first, &second, last_used).expect("it is his");
        assert!(token.number > last_used && !token.abandoned);
        assert_eq!(world.renewal(&first), Outcome::NOT_OWNER);
        assert!(!world.release(&first, Some(last_used)));
        world.passes(TTL - TICK);
        // Repeated it is the same lease, for another ttl.
        assert_eq!(world.adopts(&first, &second, last_used), Some(token));
        world.passes(TTL - TICK);
        assert!(world.is_owner(&second));
        assert_eq!(world.adopts(&first, &third, last_used), None);
        world.ends(&second);
        assert_eq!(world.adopts(&first, &third, last_used), None);
        assert_eq!(world.names(), 0);
    }
}

#[test]
fn several_names_are_adopted_together_or_not_at_all() {
    let world = World::new();
    let [first, second] = [(); 2].map(|()| Client::of_all(&["a", "b"]));
    let last_used = world.takes(&first).number;
    let token = world.adopts(&first, &second, last_used).expect("it is his");
    assert!(token.number > last_used);
    assert!(world.is_owner(&second));
    world.breaks("b");
    let third = Client::of_all(&["a", "b"]);
    assert_eq!(world.adopts(&second, &third, token.number), None);
    let left = world.sees().holders[0].token;
    assert!(left.is_some_and(|left| last_used < left && left <= token.number));
}

#[test]
fn lease_that_ran_out_or_is_of_another_kind_is_not_adopted() {
    let world = World::new();
    let [first, second] = [world.holder(READ), Client::new(WRITE)];
    assert_eq!(world.adopts(&first, &second, 1), None);
    world.passes(TTL);
    assert_eq!(world.adopts(&first, &second.reading(), 1), None);
}
