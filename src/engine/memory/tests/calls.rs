//! What becomes of those that are gone, and what else an owner can ask for.

use super::*;
use crate::base::token::HAND_OVERS;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[test]
fn repeated_acquire_gets_the_same_token_and_a_full_ttl() {
    for mode in [WRITE, READ, permits(1, 1)] {
        let world = World::new();
        let client = Client::new(mode);
        let token = world.takes(&client);
        world.passes(TTL / 2);
        assert_eq!(world.takes(&client), token);
        world.passes(TTL - TICK);
        assert!(world.is_owner(&client));
        world.passes(TICK);
        assert!(!world.is_owner(&client) && !world.renews(&client));
    }
}

#[test]
fn renewed_lease_lasts_for_another_ttl() {
    for mode in [WRITE, READ, permits(1, 1)] {
        let world = World::new();
        let client = world.holder(mode);
        world.passes(TTL - TICK);
        assert!(world.renews(&client));
        world.passes(TTL - TICK);
        assert_eq!(world.tries(&Client::new(WRITE)), None);
        world.passes(TICK);
        world.holder(WRITE);
        assert!(!world.renews(&client));
        assert!(!world.release(&client, Some(1)));
    }
}

#[test]
fn dead_reader_does_not_live_on_through_others() {
    let world = World::new();
    let [dead, alive] = [world.holder(READ), world.holder(READ)];
    let writer = world.waiter(WRITE);
    world.passes(TTL / 2);
    assert!(world.renews(&alive));
    assert_eq!(world.waits(&writer), None);
    world.passes(TTL / 2);
    assert!(!world.is_owner(&dead) && world.is_owner(&alive));
    assert_eq!(world.waits(&writer), None);
    world.ends(&alive);
    world.takes(&writer);
}

#[test]
fn dead_writer_is_told_of_to_readers_and_the_next_writer() {
    let world = World::new();
    world.holder(WRITE);
    let reader = world.waiter(READ);
    world.passes(TTL);
    let told = world.takes(&reader);
    assert!(told.abandoned);
    let second = Client::new(READ);
    assert!(world.takes(&second).abandoned);
    world.ends(&reader);
    world.ends(&second);
    let writer = Client::new(WRITE);
    let token = world.takes(&writer);
    assert!(token.abandoned && token.number > told.number);
    world.ends(&writer);
    assert!(!world.takes(&Client::new(WRITE)).abandoned);
}

#[test]
fn who_shared_and_died_is_told_to_nobody() {
    for mode in [READ, permits(1, 1)] {
        let world = World::new();
        world.holder(mode);
        world.passes(TTL);
        assert!(!world.takes(&Client::new(WRITE)).abandoned);
    }
}

#[test]
fn permit_of_a_dead_holder_comes_back() {
    let world = World::new();
    world.holder(permits(2, 3));
    let alive = world.holder(permits(1, 3));
    let line = [world.waiter(permits(1, 3)), world.waiter(permits(1, 3))];
    world.passes(TTL - TICK);
    assert!(world.renews(&alive));
    for waiter in &line {
        assert_eq!(world.waits(waiter), None);
    }
    assert_eq!(world.free(3), 0);
    world.passes(TICK);
    assert_eq!(world.free(3), 2);
    world.takes(&line[0]);
    world.takes(&line[1]);
    assert_eq!(world.free(3), 0);
}

#[test]
fn who_waits_keeps_its_place_however_seldom_it_asks() {
    let world = World::new();
    let holder = Client::of("b", WRITE);
    world.takes(&holder);
    let both = Client::of_all(&["a", "b"]);
    for _ in 0..3 {
        assert_eq!(world.waits(&both), None);
        world.passes(TTL - TICK);
        assert!(world.renews(&holder));
        for name in ["a", "b"] {
            assert_eq!(world.tries(&Client::of(name, WRITE)), None);
        }
    }
    world.ends(&holder);
    assert_eq!(world.tries(&Client::of("b", WRITE)), None);
    world.takes(&both);
}

#[test]
fn who_was_called_and_gives_up_lets_the_next_go() {
    let world = World::new();
    let first = world.holder(WRITE);
    let [second, third] = [world.waiter(WRITE), world.waiter(WRITE)];
    world.ends(&first);
    assert!(!world.is_owner(&second) && !world.renews(&second));
    world.gives_up(&second);
    world.takes(&third);
}

#[test]
fn acquire_that_is_called_back_leaves_abandonment_to_the_next() {
    let world = World::new();
    world.holder(WRITE);
    world.passes(TTL);
    for mode in [WRITE, READ, WRITE, permits(1, 1), WRITE] {
        let client = Client::new(mode);
        assert!(world.takes(&client).abandoned);
        world.gives_up(&client);
    }
    let client = Client::new(WRITE);
    let token = world.takes(&client);
    assert!(token.abandoned);
    assert!(world.release(&client, Some(token.number)));
    assert!(!world.takes(&Client::new(WRITE)).abandoned);
}

#[test]
fn called_back_acquire_of_a_free_lock_leaves_nothing() {
    for mode in [WRITE, READ, permits(1, 1)] {
        let world = World::new();
        let client = world.holder(mode);
        world.gives_up(&client);
        assert_eq!(world.names(), 0);
        assert!(!world.takes(&Client::new(WRITE)).abandoned);
    }
}

#[test]
fn downgrade_lets_in_those_that_wait_to_read() {
    let world = World::new();
    let client = Client::new(WRITE);
    let token = world.takes(&client);
    let writer = world.waiter(WRITE);
    let reader = world.waiter(READ);
    let last_used = token.number + 2 * HAND_OVERS;
    let reads = world.downgrades(&client, last_used).unwrap();
    assert!(reads.number > last_used && !reads.abandoned);
    // Asked a second time.
    assert_eq!(world.downgrades(&client, last_used), Some(reads));
    assert!(!world.is_owner(&client) && world.is_owner(&client.reading()));
    // What it is no more it can't end.
    assert!(!world.release(&client, Some(last_used)));
    world.takes(&reader);
    assert_eq!(world.tries(&Client::new(READ)), None);
    world.ends(&reader);
    assert_eq!(world.waits(&writer), None);
    world.ends(&client.reading());
    world.takes(&writer);
}

#[test]
fn lease_that_is_over_is_not_downgraded() {
    let world = World::new();
    let client = world.holder(WRITE);
    world.passes(TTL);
    assert_eq!(world.downgrades(&client, 1), None);
    assert_eq!(world.downgrades(&Client::of("b", WRITE), 1), None);
    world.holder(WRITE);
    assert_eq!(world.downgrades(&client, 1), None);
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
fn value_comes_with_the_lock_if_that_is_asked_for() {
    let world = World::new();
    let mut client = Client::new(WRITE);
    client.claim.valued = true;
    let value = |mode| {
        let mut client = Client::new(mode);
        client.claim.valued = true;
        let answer = world.ask(&client, false);
        world.gives_up(&client);
        match answer {
            Answer::Granted(grant) => grant.value,
            Answer::Taken { .. } | Answer::Broken => panic!("it is free"),
        }
    };
    assert_eq!(value(WRITE), Some(None));
    world.takes(&client);
    let downgrade = Change::Downgrade {
        last_used: 1,
        value: Some(b"1"),
    };
    assert!(token_in(&world.changes(&client, downgrade)).is_some());
    assert_eq!(value(READ), Some(Some(b"1"[..].into())));
    world.ends(&client.reading());
    assert_eq!(value(WRITE), Some(Some(b"1"[..].into())));
    let answer = world.ask(&Client::new(WRITE), false);
    assert!(matches!(answer, Answer::Granted(Grant { value: None, .. })));
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
