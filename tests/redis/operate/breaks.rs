//! How soon a break is known.

use std::thread;
use std::time::Instant;

use crosslock::{Error, LostReason};

use super::*;
use support::{RedisServer, Stopwatch, wait_until};

/// Waits until so many wait for the name in the queue.
fn wait_for_queue(server: &RedisServer, name: &str, length: i64) {
    let queue = format!("{{crosslock:{name}}}:queue");
    wait_until("the queue to be that long", PATIENCE, || {
        server.query::<i64>(&["LLEN", &queue]) == length
    });
}

/// Opens the inbox of a locker: a thread of it has waited, and waits no more.
fn open_inbox(locker: &Locker, other: &Locker) {
    let guard = held(other, "another");
    let timeout = millis(50);
    assert!(
        locker
            .try_lock_for("another", timeout)
            .expect("an answer")
            .is_none()
    );
    drop(guard);
}

#[test]
fn holder_is_told_within_a_tenth_of_a_second_while_its_inbox_is_open() {
    const ROUNDS: u32 = 20;
    let server = RedisServer::start();
    let (holder, operator) = (patient(&server.url()), patient(&server.url()));
    open_inbox(&holder, &operator);
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
    wait_for_queue(&server, "taken", 1);
    let watch = Stopwatch::start();
    operator.break_lock("n").expect("break");
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it is told");
    watch.assert_within(millis(50));
    assert_eq!(lost.reason, LostReason::Broken);
    drop(taken);
    waiter.join().unwrap().expect("the lock");
}

#[test]
fn holder_without_an_inbox_is_told_by_its_next_renewal_or_release() {
    let server = RedisServer::start();
    let operator = patient(&server.url());
    let holder = Locker::builder(&server.url()).ttl(millis(3_000)).build();
    let guard = held(&holder.expect("open"), "n");
    operator.break_lock("n").expect("break");
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it is told");
    assert_eq!(lost.reason, LostReason::Broken);
    let guard = held(&patient(&server.url()), "n");
    operator.break_lock("n").expect("break");
    match guard.verify() {
        Err(Error::Lost {
            reason: LostReason::Broken,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
    let guard = held(&patient(&server.url()), "n");
    operator.break_lock("n").expect("break");
    match guard.unlock() {
        Err(Error::Lost {
            reason: LostReason::Broken,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn waiter_of_another_process_has_the_lock_in_half_a_round_trip() {
    const ROUNDS: usize = 50;
    let server = RedisServer::start();
    let (holder, operator) = (patient(&server.url()), patient(&server.url()));
    let waiter = patient(&server.url());
    let (mut granted, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let guard = held(&holder, "n");
        let waits = thread::spawn({
            let waiter = waiter.clone();
            move || {
                let next = waiter.lock("n").expect("the lock");
                (Instant::now(), next.fencing_token(), next.was_abandoned())
            }
        });
        wait_for_queue(&server, "n", 1);
        let began = Instant::now();
        operator.break_lock("n").expect("break");
        answered.push(began.elapsed());
        let (at, token, abandoned) = waits.join().unwrap();
        granted.push(at.saturating_duration_since(began));
        assert!(abandoned && token > guard.fencing_token());
        drop(guard);
    }
    granted.sort();
    answered.sort();
    let (granted, answered) = (granted[ROUNDS / 2], answered[ROUNDS / 2]);
    report("break to the answer, median", answered);
    report("break to the next holder, median", granted);
    // One thread more is woken than by the answer.
    assert!(granted < answered + millis(20), "{granted:?}, {answered:?}");
}
