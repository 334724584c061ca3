//! What an attack on the scripts found.

use redis::Value;

use super::TTL;
use super::ask::Ask;
use super::bench::Bench;
use super::several_bench::Several;
use support::RedisServer;
use support::scripts::Verb;

const INBOX: &str = "";

/// The line is evicted or deleted while several wait: each is to be in it again after its heartbeat.
#[test]
fn lost_line_is_entered_anew_by_all_that_wait() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    for owner in ["b", "c", "d"] {
        bench.wait(owner, INBOX);
    }
    let queue = bench.queue.clone();
    bench.delete(&queue);
    for owner in ["b", "c", "d"] {
        bench.wait(owner, INBOX);
    }
    assert_eq!(bench.seen().line(), ["b", "c", "d"]);
}

/// The same: who stood there is passed over by all that come later.
#[test]
fn who_stood_in_a_lost_line_is_served_before_newcomers() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut token = bench.token("a");
    bench.wait("b", INBOX);
    bench.wait("c", INBOX);
    let queue = bench.queue.clone();
    bench.delete(&queue);
    let mut holder = "a".to_owned();
    for round in 0..10 {
        for owner in ["b", "c"] {
            let answer = bench.ask(Ask::waiting(owner, TTL, INBOX));
            if owner == "c" && answer.token().is_some() {
                return;
            }
        }
        bench.wait(&format!("new {round}"), INBOX);
        assert!(bench.release(&holder, Some(token)), "{holder}");
        let seen = bench.seen();
        (holder, token) = (seen.holder.clone().unwrap(), seen.counter.unwrap());
        if holder == "c" {
            return;
        }
    }
    panic!("c heard nothing in ten hand-offs");
}

/// One of the lines is lost while two want the same names: one of them has to get both.
#[test]
fn lost_line_leaves_no_two_that_wait_for_one_another() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    let token = several.0[1].token("x");
    // Has the first, waits for the second.
    let asked = several.ask(&[0, 1], Ask::waiting("a", TTL, INBOX));
    assert!(asked.token().is_none());
    let queue = several.0[1].queue.clone();
    several.0[1].delete(&queue);
    let asked = several.ask(&[0, 1], Ask::waiting("b", TTL, INBOX));
    assert!(asked.token().is_none());
    let asked = several.ask(&[0, 1], Ask::waiting("a", TTL, INBOX));
    assert!(asked.token().is_none());
    assert!(several.0[1].release("x", Some(token)));
    for _ in 0..20 {
        for owner in ["a", "b"] {
            let asked = several.ask(&[0, 1], Ask::waiting(owner, TTL, INBOX));
            if asked.token().is_some() {
                return;
            }
        }
    }
    let holders: Vec<_> = several.seen().into_iter().map(|seen| seen.holder).collect();
    panic!("they wait for one another: {holders:?}");
}

fn keep(bench: &mut Bench, mode: &str, owner: &str, token: u64, millis: u64) {
    let (counter, millis) = ((token + 1).to_string(), millis.to_string());
    let arguments = [owner, &counter, mode, "", &millis];
    assert_eq!(
        bench.run(Verb::Release, false, &arguments).unwrap(),
        Value::Int(1)
    );
}

/// A reader whose lock was deleted releases what it doesn't have, and another keeps.
#[test]
fn kept_lock_is_not_freed_by_a_reader_that_lost_it() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let reads = bench.granted(Ask::once("r").with_mode("r"));
    bench.forget_holder();
    let token = bench.token("b");
    keep(&mut bench, "x", "b", token, TTL);
    bench.release_answer("r", "r", Some(reads), None);
    assert_eq!(bench.seen().holder.as_deref(), Some("crosslock:kept"));
}

/// The same, by its renewal.
#[test]
fn kept_lock_is_not_shortened_by_a_reader_that_lost_it() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.granted(Ask::once("r").with_mode("r"));
    bench.forget_holder();
    let token = bench.token("b");
    keep(&mut bench, "x", "b", token, 100 * TTL);
    assert!(
        !bench.renew_as("r", "r", TTL, None),
        "it isn't the reader's"
    );
    assert!(bench.seen().pttls[0] > 90 * 60_000);
}

/// A renewal that was on the wire when the guard ended comes after the release.
#[test]
fn late_renewal_does_not_shorten_what_a_reader_keeps() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for mode in ["r", "1/3"] {
        let token = bench.granted(Ask::once("r").with_mode(mode).with_ttl(1000));
        keep(&mut bench, mode, "r", token, 100 * TTL);
        bench.renew_as(mode, "r", 1000, None);
        assert!(bench.seen().pttls[0] > 90 * 60_000, "{mode}");
        let (lock, holders) = (bench.lock.clone(), bench.holders.clone());
        bench.delete(&lock);
        bench.delete(&holders);
    }
}

/// A counter that was given its ttl 50 minutes ago, in the same hour, and a lease of a day that nobody renews.
#[test]
fn counter_outlives_the_longest_lease() {
    const DAY: u64 = 86_400_000;
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let now = bench.micros();
    let fence = bench.fence.clone();
    let hour = 3_600_000_000;
    let counted = (now - now % hour + now) / 2 / 4 * 4;
    let left = (DAY - (now - counted) / 1000).to_string();
    bench.query::<()>(&["SET", &fence, &counted.to_string(), "PX", &left]);
    bench.granted(Ask::once("a").with_ttl(DAY));
    let seen = bench.seen();
    assert!(seen.pttls[1] >= seen.pttls[0], "{seen:?}");
}

/// The line is lost, and a newcomer is the first to enter it again.
#[test]
fn readers_of_a_lost_line_are_let_in_together() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    for owner in ["r1", "r2"] {
        bench.wait_to("r", owner, INBOX);
    }
    let readers = bench.readers.clone();
    bench.delete(&readers);
    bench.wait_to("r", "r3", INBOX);
    for owner in ["r1", "r2"] {
        bench.wait_to("r", owner, INBOX);
    }
    assert!(bench.release("a", Some(token)));
    assert_eq!(bench.seen().shares.len(), 3, "{:?}", bench.seen());
}
