//! What operators see, to the second.

use super::*;
use crate::base::inspection::{Inspection, LockState, Wants};
use crate::engine::Cursor;

const SECOND: Duration = Duration::from_secs(1);

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
