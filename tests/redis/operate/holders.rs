//! How soon holders know that their lock was broken, and what is shown of them.

use std::thread;
use std::time::Instant;

use crosslock::{LockState, LostReason};

use super::*;
use support::{Proxy, RedisServer, Stopwatch, wait_until};

#[test]
fn holder_is_told_within_a_tenth_of_a_second_while_its_inbox_is_open() {
    const ROUNDS: u32 = 20;
    let server = RedisServer::start();
    let (holder, operator) = (patient(&server.url()), patient(&server.url()));
    // A thread of it has waited, and waits no more.
    let taken = held(&operator, "another");
    let waited = holder.try_lock_for("another", millis(50));
    assert!(waited.expect("an answer").is_none());
    drop(taken);
    let mut longest = Duration::ZERO;
    for round in 0..ROUNDS {
        // Nobody waits: the inbox is read by its thread, after a while, or was read by it before.
        let guard = held(&holder, "n");
        thread::sleep(millis(u64::from(round * 7)));
        let watch = Stopwatch::start();
        let began = Instant::now();
        let broken = operator.break_lock("n").expect("break");
        assert_eq!(broken[0].token, Some(guard.fencing_token()));
        let lost = guard.lost().recv_timeout(PATIENCE).expect("it is told");
        longest = longest.max(began.elapsed());
        watch.assert_within(millis(100));
        assert_eq!(lost.reason, LostReason::Broken);
        assert!(!guard.is_held());
    }
    report("a broken holder is told within", longest);
}

#[test]
fn holder_whose_other_thread_waits_is_told_at_once() {
    let server = RedisServer::start();
    let (holder, operator) = (patient(&server.url()), patient(&server.url()));
    let guard = held(&holder, "n");
    let taken = held(&operator, "taken");
    let waiter = thread::spawn({
        let holder = holder.clone();
        move || holder.lock("taken").map(drop)
    });
    wait_until("the waiter", PATIENCE, || {
        server.query::<i64>(&["LLEN", "{crosslock:taken}:queue"]) == 1
    });
    let watch = Stopwatch::start();
    operator.break_lock("n").expect("break");
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it is told");
    watch.assert_within(millis(50));
    assert_eq!(lost.reason, LostReason::Broken);
    drop(taken);
    waiter.join().unwrap().expect("the lock");
}

#[test]
fn foreign_holder_is_shown_and_broken_without_its_text() {
    let server = RedisServer::start();
    let locker = patient(&server.url());
    for (text, ttl) in [
        ("a secret", &["PX", "60000"][..]),
        // It looks almost like an owner.
        ("0123456789-0123456789-0123456789-012345/a/1/2", &[]),
    ] {
        server.query::<()>(&[&["SET", "{crosslock:n}", text][..], ttl].concat());
        let seen = locker.inspect("n").expect("inspect");
        assert_eq!(seen.state, LockState::Exclusive);
        let broken = locker.break_lock("n").expect("break");
        for holder in [&seen.holders[0], &broken[0]] {
            assert_eq!((&holder.party, holder.token), (&None, None));
            assert_eq!(holder.remaining.is_none(), ttl.is_empty());
            assert!(holder.remaining.is_none_or(|left| left > millis(30_000)));
        }
        assert!(!format!("{seen:?} {broken:?}").contains(text));
        drop(held(&locker, "n"));
    }
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
