//! Users who may not hear of grants, or not tell others: everyone is served all the same, only later.

use std::sync::{Barrier, Mutex};
use std::thread;

use crosslock::{LockGuard, Locker};

use super::rights::{OURS, denials, server_with, url_of, user};
use super::*;
use support::{RedisServer, eventually, wait_until};

const KEYS: &str = "~{crosslock:* resetchannels";

/// Those who can't hear: without the command, without any channel, with the channels of others.
const DEAF: [&str; 3] = ["no-subscribe", "no-channel", "others-channel"];

/// Those who can't tell.
const MUTE: [&str; 4] = ["no-publish", "no-count", "no-channel", "others-channel"];

fn server() -> RedisServer {
    server_with(&[
        user("no-subscribe", OURS, Some("subscribe")),
        user("no-channel", KEYS, None),
        user("others-channel", &format!("{KEYS} &other:inbox:*"), None),
        user("no-publish", OURS, Some("publish")),
        user("no-count", OURS, Some("pubsub|numsub")),
        user("app", OURS, None),
    ])
}

/// With a ttl that makes heartbeats come every second.
fn locker(server: &RedisServer, user: &str) -> Locker {
    let builder = Locker::builder(&url_of(server, user)).ttl(millis(3_000));
    builder.build().expect("open")
}

#[track_caller]
fn assert_next(guard: LockGuard, token_before: u64, server: &RedisServer) {
    assert!(guard.fencing_token() > token_before);
    assert!(!guard.was_abandoned());
    assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_released(server);
}

#[test]
fn waiter_that_may_not_hear_is_served_by_its_heartbeats() {
    let server = server();
    for name in DEAF {
        let (app, waiting) = (locker(&server, "app"), locker(&server, name));
        let guard = held(&app);
        let token = guard.fencing_token();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| waiting.lock(NAME).unwrap());
            wait_for_line(&server, 1);
            wait_until("it may not hear", PATIENCE, || !denials(&server).is_empty());
            guard.unlock().unwrap();
            assert!(server.get(LOCK).is_some(), "it is the waiter's now");
            assert_next(waiter.join().unwrap(), token, &server);
        });
    }
    assert_no_clients(&server);
}

#[test]
fn holder_that_may_not_tell_still_hands_on() {
    let server = server();
    for name in MUTE {
        let (waiting, mute) = (locker(&server, "app"), locker(&server, name));
        let guard = held(&mute);
        let (token, owner) = (guard.fencing_token(), server.get(LOCK));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| waiting.lock(NAME).unwrap());
            wait_for_inbox(&server);
            denials(&server);
            guard.unlock().unwrap();
            assert!(!denials(&server).is_empty(), "{name} may tell");
            let next = server.get(LOCK);
            assert!(next.is_some() && next != owner, "it is the waiter's now");
            assert_next(waiter.join().unwrap(), token, &server);
        });
    }
    assert_no_clients(&server);
}

#[test]
fn second_namespace_of_a_locker_that_may_not_tell_is_served() {
    let both = "~{crosslock:* ~{second:* resetchannels &crosslock:inbox:* &second:inbox:*";
    let server = server_with(&[
        user("no-publish", both, Some("publish")),
        user("app", both, None),
    ]);
    let (app, waiting) = (locker(&server, "app"), locker(&server, "no-publish"));
    for namespace in ["crosslock", "second"] {
        let [app, waiting] = [&app, &waiting].map(|lock| lock.with_namespace(namespace).unwrap());
        let guard = held(&app);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| waiting.lock(NAME).unwrap());
            let queue = format!("{{{namespace}:{NAME}}}:queue");
            wait_until("the line", PATIENCE, || server.pttl(&queue) > 0);
            guard.unlock().unwrap();
            waiter.join().unwrap().unlock().unwrap();
        });
    }
    drop((app, waiting));
    assert_no_clients(&server);
}

#[test]
fn threads_of_lockers_that_neither_hear_nor_tell_are_all_served() {
    const CYCLES: usize = 10;
    let server = server();
    let lockers = ["no-channel", "no-channel"].map(|name| locker(&server, name));
    let tokens = Mutex::new(Vec::new());
    let cycle = |lock: &Locker| {
        let guard = lock.lock(NAME).unwrap();
        tokens.lock().unwrap().push(guard.fencing_token());
        guard.unlock().unwrap();
    };
    thread::scope(|scope| {
        for lock in lockers.iter().chain(&lockers) {
            let cycle = &cycle;
            scope.spawn(move || (0..CYCLES).for_each(|_| cycle(lock)));
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 4 * CYCLES);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    assert_released(&server);
}

#[test]
fn lockers_that_begin_to_wait_at_once_all_have_an_inbox_soon() {
    const WAITERS_AT_ONCE: usize = 32;
    let server = RedisServer::start();
    let guard = held(&open(&server.url()));
    let lockers: Vec<_> = (0..WAITERS_AT_ONCE).map(|_| open(&server.url())).collect();
    thread::scope(|scope| {
        for waiting in &lockers {
            scope.spawn(|| waiting.lock(NAME).unwrap().unlock().unwrap());
        }
        let with_inbox = || {
            let waiters: Vec<String> = server.query(&["HVALS", WAITERS]);
            waiters
                .iter()
                .filter(|one| one.contains(" crosslock:inbox:"))
                .count()
        };
        // Less than it takes an inbox to look for itself.
        let in_time = eventually(PATIENCE, || with_inbox() == WAITERS_AT_ONCE);
        let found = with_inbox();
        guard.unlock().unwrap();
        assert!(in_time, "only {found} of {WAITERS_AT_ONCE} have one");
    });
    assert_released(&server);
}

#[test]
fn threads_of_a_locker_that_begin_to_wait_at_once_all_have_its_inbox_soon() {
    const NAMES: usize = 8;
    const ROUNDS: usize = 8;
    let server = RedisServer::start();
    let holder = open(&server.url());
    let lines: Vec<_> = (0..NAMES)
        .map(|n| format!("{{crosslock:{n}}}:waiters"))
        .collect();
    let with_inbox = || {
        let waiters = lines
            .iter()
            .flat_map(|key| server.query::<Vec<String>>(&["HVALS", key]));
        waiters
            .filter(|one| one.contains(" crosslock:inbox:"))
            .count()
    };
    for _ in 0..ROUNDS {
        let lock = |n: usize| holder.lock(&n.to_string()).unwrap();
        let guards: Vec<_> = (0..NAMES).map(lock).collect();
        let waiting = open(&server.url());
        let together = Barrier::new(NAMES);
        thread::scope(|scope| {
            for n in 0..NAMES {
                let (waiting, together) = (&waiting, &together);
                scope.spawn(move || {
                    together.wait();
                    waiting.lock(&n.to_string()).unwrap().unlock().unwrap();
                });
            }
            // Less than it takes an inbox to look for itself.
            let in_time = eventually(PATIENCE, || with_inbox() == NAMES);
            let found = with_inbox();
            drop(guards);
            assert!(in_time, "only {found} of {NAMES} have one");
        });
    }
}
