//! What is told of a lock to those who look at it, and to whom it is passed on.

use std::thread;
use std::time::Duration;

use redis::Value;

use super::TTL;
use super::ask::{Ask, owner, read};
use super::bench::Bench;
use super::seen::Ears;
use support::RedisServer;
use support::scripts::Verb;

/// A holder, as others see it: what isn't secret, permits, for how long its lease lasts, token.
type Shown = (String, u64, i64, u64);
/// What others see of a waiter, and its mode.
type Waiter = (String, String);

#[derive(Debug)]
pub(crate) struct Inspected {
    state: String,
    remaining: i64,
    out: u64,
    of: String,
    holders: Vec<Shown>,
    pub(crate) queue: Vec<Waiter>,
    readers: Vec<Waiter>,
}

/// Looks at the lock, which changes nothing.
pub(crate) fn inspect(bench: &mut Bench) -> Inspected {
    type Parts = (String, u64, i64, i64, u64, String, Value, Value, Value);
    let before = bench.micros();
    bench.query::<()>(&["CONFIG", "RESETSTAT"]);
    let answer = bench.run(Verb::Inspect, &[]).expect("inspect");
    let stats: String = bench.query(&["INFO", "commandstats"]);
    for writes in "set del zrem zadd hset hdel lpop pexpire pexpireat".split(' ') {
        assert!(!stats.contains(&format!("cmdstat_{writes}:")), "{writes}");
    }
    let (state, now, _, remaining, out, of, holders, queue, readers): Parts = read(answer);
    assert!((before..=bench.micros()).contains(&now));
    Inspected {
        state,
        remaining,
        out,
        of,
        holders: read(holders),
        queue: read(queue),
        readers: read(readers),
    }
}

/// Who waits, and how.
pub(crate) fn shown(waiters: &[Waiter]) -> Vec<(&str, &str)> {
    let waiters = waiters.iter();
    waiters
        .map(|(owner, mode)| (owner.as_str(), mode.as_str()))
        .collect()
}

#[test]
fn those_that_share_are_told_each_with_its_own_token() {
    let server = RedisServer::start();
    for (mode, state, permits, of) in [("r", "readers", 1, ""), ("2/9", "permits", 2, "/9")] {
        let mut bench = Bench::new(&server);
        let owners = [1, 2].map(owner);
        let mut ask = |number: usize| bench.granted(Ask::once(&owners[number]).with_mode(mode));
        let tokens = [ask(0), ask(1)];
        // Asked again, with the same token.
        assert_eq!(ask(0), tokens[0]);
        assert!(bench.renew_as(mode, &owners[0], 2 * TTL));
        let seen = inspect(&mut bench);
        assert_eq!((&*seen.state, &*seen.of), (state, of));
        assert_eq!(seen.out, if mode == "r" { 0 } else { 4 });
        let holders = seen.holders.iter().map(|one| (&*one.0, one.1, one.3));
        let holders: Vec<_> = holders.collect();
        let expected = [
            ("host/12/2", permits, tokens[1]),
            ("host/12/1", permits, tokens[0]),
        ];
        assert_eq!(holders, expected, "the lease that ends first is the first");
    }
}

#[test]
fn what_is_over_or_stays_out_has_no_holder() {
    let server = RedisServer::start();
    for (mode, state, out) in [("r", "kept", 0), ("2/9", "permits", 2)] {
        let mut bench = Bench::new(&server);
        bench.granted(Ask::once(&owner(1)).with_mode(mode).with_ttl(1));
        let token = bench.granted(Ask::once(&owner(2)).with_mode(mode));
        thread::sleep(Duration::from_millis(5));
        let seen = inspect(&mut bench);
        assert_eq!((seen.holders.len(), seen.out), (1, out), "{seen:?}");
        let counter = (token + 1).to_string();
        let owner = owner(2);
        let keep = [&*owner, &counter, mode, "", "60000"];
        bench.run(Verb::Release, &keep).expect("release");
        let seen = inspect(&mut bench);
        assert_eq!(
            (&*seen.state, seen.holders.len(), seen.out),
            (state, 0, out)
        );
        assert!((50_000..=60_000).contains(&seen.remaining), "{seen:?}");
    }
}

#[test]
fn waiters_are_told_in_their_order_but_for_those_that_are_gone() {
    let server = RedisServer::start();
    let _ears = Ears::on(&server, &["heard"]);
    let mut bench = Bench::new(&server);
    bench.token(&owner(1));
    bench.wait(&owner(2), "heard");
    bench.wait_and_die(&owner(3), "");
    bench.wait(&owner(4), "nobody listens");
    bench.wait_to("w", &owner(5), "");
    bench.wait_to("2/3", &owner(6), "heard");
    bench.wait_to("r", &owner(7), "heard");
    bench.wait_to("r", &owner(8), "heard");
    let seen = inspect(&mut bench);
    let queue = [("host/12/2", "x"), ("host/12/5", "w"), ("host/12/6", "2/3")];
    assert_eq!(shown(&seen.queue), queue);
    let readers = [("host/12/7", "r"), ("host/12/8", "r")];
    assert_eq!(shown(&seen.readers), readers);
}

#[test]
fn answer_is_bounded_however_many_wait_and_share() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let owner = |number: u64| format!("{number:08x}-0000-4000-8000-000000000000/host/12/{number}");
    bench.granted(Ask::once(&owner(0)).with_mode("r"));
    let holders = bench.holders.clone();
    let ends = (bench.micros() / 1_000 + TTL).to_string();
    bench.wait(&owner(1), "");
    let (queue, waiters) = (bench.queue.clone(), bench.waiters.clone());
    let waiter: String = bench.query(&["HGET", &waiters, &owner(1)]);
    let mut pipe = redis::pipe();
    for number in 2..3_000 {
        pipe.rpush(&queue, owner(number))
            .hset(&waiters, owner(number), &waiter);
        pipe.zadd(&holders, format!("1 {}", owner(number)), &ends);
    }
    pipe.query::<()>(&mut bench.connection).unwrap();
    let seen = inspect(&mut bench);
    assert_eq!((seen.holders.len(), seen.queue.len()), (1_000, 1_000));
}

#[test]
fn value_comes_with_a_lease_that_is_adopted() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token(&owner(1));
    let keys = bench.keys();
    bench.query::<()>(&["SET", &keys[6], "stored"]);
    let (ttl, counter) = (TTL.to_string(), (token + 1).to_string());
    let arguments = [owner(2), ttl, "x".into(), owner(1), counter];
    let answer = bench.run_on(Verb::Adopt, &keys, &arguments);
    let (adopted, value): (u64, String) = read(answer.expect("adopt"));
    assert!(adopted > token);
    assert_eq!(value, "stored");
}
