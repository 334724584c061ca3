//! How locks look to those who don't hold them.

use std::thread;

use crosslock::{LockState, Wants};

use super::*;
use support::{Proxy, RedisServer, wait_until};

#[test]
fn foreign_holder_is_shown_with_its_ttl() {
    let server = RedisServer::start();
    let locker = patient(&server.url());
    server.query::<()>(&["SET", "{crosslock:n}", "a secret", "PX", "60000"]);
    let seen = locker.inspect("n").expect("inspect");
    assert_eq!(seen.state, LockState::Exclusive);
    let holder = &seen.holders[0];
    assert_eq!((&holder.party, holder.token), (&None, None));
    assert!(holder.remaining.is_some_and(|left| left > millis(30_000)));
    assert!(!format!("{seen:?}").contains("secret"));
    server.query::<()>(&["SET", "{crosslock:n}", "a secret"]);
    assert_eq!(
        locker.inspect("n").expect("inspect").holders[0].remaining,
        None
    );
}

#[test]
fn inspection_is_one_round_trip() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = patient(&proxy.url());
    let guard = held(&locker, "n");
    locker.inspect("n").expect("inspect");
    let before = proxy.requests();
    let seen = locker.inspect("n").expect("inspect");
    assert_eq!(proxy.requests() - before, 1);
    assert_eq!(seen.holders[0].token, Some(guard.fencing_token()));
    assert!(seen.holders[0].held_for.is_some());
}

#[test]
fn waiters_of_all_kinds_are_shown_in_the_order_in_which_they_are_served() {
    let server = RedisServer::start();
    let holder = held(&patient(&server.url()), "n");
    let mut waiting = Vec::new();
    for (number, reads) in [false, true, false].into_iter().enumerate() {
        let locker = Locker::builder(&server.url()).ttl(LONG);
        let locker = locker
            .label(&format!("waiter {number}"))
            .build()
            .expect("open");
        let observer = locker.clone();
        waiting.push(thread::spawn(move || {
            if reads {
                locker.read("n").map(drop)
            } else {
                locker.lock("n").map(drop)
            }
        }));
        wait_until("the waiter to be seen", PATIENCE, || {
            observer.inspect("n").expect("inspect").waiters.len() == number + 1
        });
    }
    let seen = patient(&server.url()).inspect("n").expect("inspect");
    let label = |number: usize| seen.waiters[number].party.clone().and_then(|one| one.label);
    let labels = [0, 1, 2].map(label);
    // Readers go in first after an exclusive holder.
    let expected = ["waiter 1", "waiter 0", "waiter 2"].map(|label| Some(label.to_owned()));
    assert_eq!(labels, expected);
    assert_eq!(seen.waiters[0].wants, Wants::Shared);
    drop(holder);
    waiting
        .into_iter()
        .for_each(|one| one.join().unwrap().expect("the lock"));
}
