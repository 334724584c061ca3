//! Who is let in beside whom, and who goes first.

use super::*;
use std::time::Instant;

#[test]
fn readers_read_together_and_a_writer_is_alone() {
    let world = World::new();
    let readers = [world.holder(READ), world.holder(READ)];
    assert_eq!(world.tries(&Client::new(WRITE)), None);
    world.ends(&readers[0]);
    assert_eq!(world.tries(&Client::new(WRITE)), None);
    world.ends(&readers[1]);
    let writer = world.holder(WRITE);
    assert_eq!(world.tries(&Client::new(WRITE)), None);
    assert_eq!(world.tries(&Client::new(READ)), None);
    world.ends(&writer);
    world.holder(READ);
}

#[test]
fn reader_waits_behind_a_writer_that_waits() {
    let world = World::new();
    let inside = world.holder(READ);
    let writer = world.waiter(WRITE);
    let reader = world.waiter(READ);
    world.ends(&inside);
    assert_eq!(world.waits(&reader), None);
    world.takes(&writer);
    world.ends(&writer);
    world.takes(&reader);
}

#[test]
fn readers_that_waited_go_in_together_before_the_next_writer() {
    let world = World::new();
    let first = world.holder(WRITE);
    let second = world.waiter(WRITE);
    let readers = [world.waiter(READ), world.waiter(READ)];
    world.ends(&first);
    // Their turn lasts until all of them have come, in whichever order they do.
    assert_eq!(world.waits(&second), None);
    let late = world.waiter(READ);
    world.takes(&readers[1]);
    world.ends(&readers[1]);
    assert_eq!(world.waits(&second), None);
    world.takes(&readers[0]);
    assert_eq!(world.waits(&late), None);
    world.ends(&readers[0]);
    world.takes(&second);
    assert_eq!(world.waits(&late), None);
    world.ends(&second);
    world.takes(&late);
}

#[test]
fn preferred_reader_passes_writers_that_wait() {
    let world = World::new();
    let _inside = world.holder(READ);
    let _writer = world.waiter(WRITE);
    world.takes(&Client::preferring(READ, Prefer::Readers));
    assert_eq!(world.tries(&Client::new(READ)), None);
}

#[test]
fn preferred_writer_goes_before_readers_that_waited_longer() {
    let world = World::new();
    let first = world.holder(WRITE);
    let reader = world.waiter(READ);
    let second = Client::preferring(WRITE, Prefer::Writers);
    assert_eq!(world.waits(&second), None);
    world.ends(&first);
    assert_eq!(world.waits(&reader), None);
    world.takes(&second);
    world.ends(&second);
    world.takes(&reader);
}

#[test]
fn permits_are_as_many_as_there_are() {
    let world = World::new();
    let holders = [world.holder(permits(1, 3)), world.holder(permits(2, 3))];
    assert_eq!(world.free(3), 0);
    assert_eq!(world.tries(&Client::new(permits(1, 3))), None);
    world.ends(&holders[1]);
    assert_eq!(world.free(3), 2);
    assert_eq!(world.free(1), 0);
    world.holder(permits(2, 3));
}

#[test]
fn large_request_is_not_passed_by_small_ones() {
    let world = World::new();
    let [one, other] = [world.holder(permits(1, 3)), world.holder(permits(1, 3))];
    let large = world.waiter(permits(3, 3));
    // A permit is free, but not for one that came later.
    let small = world.waiter(permits(1, 3));
    assert_eq!(world.tries(&Client::new(permits(1, 3))), None);
    world.ends(&one);
    assert_eq!(world.waits(&small), None);
    world.ends(&other);
    assert_eq!(world.waits(&small), None);
    world.takes(&large);
    world.ends(&large);
    world.takes(&small);
}

#[test]
fn permits_are_served_first_come_first_served() {
    let world = World::new();
    let holder = world.holder(permits(2, 2));
    let line = [(), (), ()].map(|()| world.waiter(permits(1, 2)));
    world.ends(&holder);
    // It is the turn of the first two, whoever asks first.
    assert_eq!(world.waits(&line[2]), None);
    world.takes(&line[1]);
    world.takes(&line[0]);
    world.ends(&line[1]);
    world.takes(&line[2]);
}

#[test]
fn ways_to_hold_a_name_exclude_one_another() {
    let modes = [WRITE, READ, permits(1, 2)];
    for held in modes {
        for asked in modes {
            let world = World::new();
            let _inside = world.holder(held);
            let shares = held == asked && held != WRITE;
            let answer = world.tries(&Client::new(asked));
            assert_eq!(answer.is_some(), shares, "{held:?} {asked:?}");
            if held != permits(1, 2) {
                assert_eq!(world.free(2), 0);
            }
        }
    }
}

#[test]
fn mixed_line_is_served_one_kind_after_the_other() {
    let world = World::new();
    let reader = world.holder(READ);
    let line = [WRITE, permits(1, 2), permits(1, 2), WRITE].map(|mode| world.waiter(mode));
    world.ends(&reader);
    world.takes(&line[0]);
    assert_eq!(world.waits(&line[1]), None);
    world.ends(&line[0]);
    world.takes(&line[2]);
    assert_eq!(world.waits(&line[3]), None);
    world.takes(&line[1]);
    world.ends(&line[1]);
    world.ends(&line[2]);
    world.takes(&line[3]);
}

#[test]
fn released_lock_belongs_to_the_first_in_line_whoever_asks() {
    let world = World::new();
    let holder = world.holder(WRITE);
    let [first, second] = [world.waiter(WRITE), world.waiter(WRITE)];
    world.ends(&holder);
    assert_eq!(world.tries(&holder), None);
    assert_eq!(world.waits(&second), None);
    world.takes(&first);
}

#[test]
fn who_leaves_the_line_lets_those_behind_it_go() {
    for leave in [World::gives_up, |world: &World, client: &Client| {
        assert_eq!(world.tries(client), None);
    }] {
        let world = World::new();
        let _inside = world.holder(READ);
        let writer = world.waiter(WRITE);
        let reader = world.waiter(READ);
        leave(&world, &writer);
        world.takes(&reader);
        world.holder(READ);
    }
}

#[test]
fn several_names_are_had_all_or_none() {
    let world = World::new();
    let one = Client::of("a", WRITE);
    world.takes(&one);
    let both = Client::of_all(&["a", "b"]);
    assert_eq!(world.tries(&both), None);
    let other = Client::of("b", WRITE);
    world.takes(&other);
    world.ends(&other);
    world.ends(&one);
    let token = world.takes(&both);
    assert_eq!(world.takes(&both), token);
    assert!(world.is_owner(&both) && world.renews(&both));
    assert_eq!(world.tries(&one), None);
    assert_eq!(world.tries(&other), None);
    assert!(world.release(&both, Some(token.number)));
    assert!(world.takes(&one).number > token.number);
    assert!(world.takes(&other).number > token.number);
}

#[test]
fn overlapping_sets_wait_for_one_another_in_one_direction() {
    let world = World::new();
    let holder = Client::of("b", WRITE);
    world.takes(&holder);
    let first = Client::of_all(&["a", "b"]);
    let second = Client::of_all(&["a", "b", "c"]);
    assert_eq!(world.waits(&first), None);
    assert_eq!(world.waits(&second), None);
    // Its place in a free one is kept.
    assert_eq!(world.tries(&Client::of("a", WRITE)), None);
    assert_eq!(world.tries(&Client::of("c", WRITE)), None);
    world.ends(&holder);
    assert_eq!(world.waits(&second), None);
    world.takes(&first);
    world.ends(&first);
    world.takes(&second);
    world.ends(&second);
    assert_eq!(world.names(), 0);
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
