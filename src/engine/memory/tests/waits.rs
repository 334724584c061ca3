//! How a waiter is notified, and when it goes on by itself.

use super::*;
use crate::base::cancel::Cancel;
use std::time::Instant;

/// What a thread does that waits: it asks, and waits until it has the lock. Gives how often it asked.
fn wait_for(world: &World, client: &Client) -> usize {
    for asked in 1.. {
        if world.waits(client).is_some() {
            return asked;
        }
        world
            .engine
            .wait(client.request(), LONGEST_PAUSE, &Deadline::NEVER);
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
    let asked: usize = std::thread::scope(|scope| {
        let world = &world;
        let clients = lines.iter().flatten();
        let threads: Vec<_> = clients
            .map(|client| {
                scope.spawn(move || {
                    let asked = wait_for(world, client);
                    world.ends(client);
                    asked
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        world.ends(&holder);
        let asked = threads.into_iter().map(|thread| thread.join().unwrap());
        asked.sum()
    });
    // Once in vain at most, and once when they were called.
    assert!(asked <= 2 * 12, "{asked}");
}

#[test]
fn one_that_waits_for_several_names_is_woken_when_it_has_all() {
    let world = World::new();
    let holders = ["a", "b"].map(|name| Client::of(name, WRITE));
    for client in &holders {
        world.takes(client);
    }
    let both = Client::of_all(&["a", "b"]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&world, &both));
        for client in &holders {
            std::thread::sleep(Duration::from_millis(10));
            world.ends(client);
        }
        assert!(waits.join().unwrap() <= 2);
    });
}

#[test]
fn release_between_question_and_wait_is_not_missed() {
    let world = World::new();
    let holder = world.holder(WRITE);
    let waiter = world.waiter(WRITE);
    world.ends(&holder);
    let begun = Instant::now();
    world
        .engine
        .wait(waiter.request(), LONGEST_PAUSE, &Deadline::NEVER);
    assert!(begun.elapsed() < LONGEST_PAUSE / 2);
    world.takes(&waiter);
}

#[test]
fn wait_ends_with_the_lease_it_is_for() {
    let engine = MemoryEngine::private(ENDPOINT, Arc::new(BootClock));
    let [dead, waiter] = [Client::new(WRITE), Client::new(WRITE)];
    let request = Request {
        ttl: Duration::from_millis(30),
        ..dead.request()
    };
    engine.ask(request, false).unwrap();
    let begun = Instant::now();
    let token = loop {
        if let Some(token) = token(&engine.ask(waiter.request(), true).unwrap()) {
            break token;
        }
        engine.wait(waiter.request(), LONGEST_PAUSE, &Deadline::NEVER);
    };
    assert!(token.abandoned);
    assert!(begun.elapsed() < LONGEST_PAUSE / 2);
}

#[test]
fn cancelled_wait_ends_at_once() {
    let world = World::new();
    world.holder(WRITE);
    let waiter = world.waiter(WRITE);
    for set_before in [true, false] {
        let cancel = Cancel::default();
        let until = Deadline::NEVER.or(&cancel);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            if set_before {
                cancel.set();
            }
            scope.spawn(|| world.engine.wait(waiter.request(), LONGEST_PAUSE, &until));
            cancel.set();
        });
        assert!(begun.elapsed() < LONGEST_PAUSE / 2);
    }
}

#[test]
fn woken_wait_goes_on() {
    let world = World::new();
    let holder = world.holder(WRITE);
    let waiter = world.waiter(WRITE);
    let cancel = Cancel::default();
    let until = Deadline::NEVER.or(&cancel);
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| world.engine.wait(waiter.request(), LONGEST_PAUSE, &until));
        for _ in 0..100 {
            cancel.wake();
            std::thread::yield_now();
        }
        assert!(!wait.is_finished());
        world.ends(&holder);
        wait.join().expect("it ends");
    });
    world.takes(&waiter);
}
