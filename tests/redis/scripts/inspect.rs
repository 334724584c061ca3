//! What is told of a lock to those who look at it.

use super::TTL;
use super::ask::Ask;
use super::bench::Bench;
use super::breaks::{Shown, break_lock, owner, read};
use super::seen::Ears;
use support::RedisServer;
use support::scripts::Verb;

/// What others see of a waiter, and its mode.
type Waiter = (String, String);

#[derive(Debug)]
struct Inspected {
    state: String,
    counter: i64,
    remaining: i64,
    out: u64,
    of: String,
    holders: Vec<Shown>,
    queue: Vec<Waiter>,
    readers: Vec<Waiter>,
}

/// Looks at the lock, which changes nothing.
#[allow(clippy::too_many_lines, reason = "one scene, step by step")]
fn inspect(bench: &mut Bench) -> Inspected {
    let before = bench.seen();
    bench.query::<()>(&["CONFIG", "RESETSTAT"]);
    let answer = bench.run(Verb::Inspect, false, &[]).expect("inspect");
    let stats: String = bench.query(&["INFO", "commandstats"]);
    for writes in [
        "set",
        "del",
        "zrem",
        "zadd",
        "hset",
        "hdel",
        "lpop",
        "pexpire",
        "pexpireat",
    ] {
        assert!(!stats.contains(&format!("cmdstat_{writes}:")), "{writes}");
    }
    let after = bench.seen();
    assert_eq!(after.contents(), before.contents());
    type Parts = (
        String,
        u64,
        i64,
        i64,
        u64,
        String,
        Vec<Shown>,
        Vec<Waiter>,
        Vec<Waiter>,
    );
    let (state, now, counter, remaining, out, of, holders, queue, readers): Parts = read(answer);
    assert!((before.micros..=after.micros).contains(&now));
    Inspected {
        state,
        counter,
        remaining,
        out,
        of,
        holders,
        queue,
        readers,
    }
}

/// Numbers of owners, as they are told.
fn public(numbers: &[u8]) -> Vec<String> {
    numbers
        .iter()
        .map(|number| format!("host/12/{number}"))
        .collect()
}

fn names(waiters: &[Waiter]) -> Vec<String> {
    waiters.iter().map(|(public, _)| public.clone()).collect()
}

#[test]
fn free_lock_is_free_whatever_was_before() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let seen = inspect(&mut bench);
    assert_eq!(
        (&*seen.state, seen.counter, seen.remaining),
        ("free", -1, -2)
    );
    assert!(seen.holders.is_empty() && seen.queue.is_empty() && seen.readers.is_empty());
    let token = bench.token(&owner(1));
    assert!(bench.release(&owner(1), Some(token)));
    let seen = inspect(&mut bench);
    assert_eq!(
        (&*seen.state, seen.counter),
        ("free", token.cast_signed() + 1)
    );
}

#[test]
fn exclusive_holder_is_told_with_its_label_and_without_its_secret() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let labelled = format!("{}/deploy 47/11", owner(1));
    let token = bench.token(&labelled);
    let seen = inspect(&mut bench);
    assert_eq!(seen.state, "exclusive");
    let (public, permits, remaining, its) = &seen.holders[0];
    assert_eq!(
        (&**public, *permits, *its),
        ("host/12/1/deploy 47/11", 1, token)
    );
    assert!((50_000..=60_000).contains(remaining) && seen.remaining <= *remaining + 1);
}

#[test]
fn foreign_holder_is_told_with_its_ttl_and_without_its_text() {
    let server = RedisServer::start();
    for text in [
        "a token of another",
        "0123456789-0123456789-0123456789-012345/a/1/2",
    ] {
        let mut bench = Bench::new(&server);
        let lock = bench.lock.clone();
        bench.query::<()>(&["SET", &lock, text]);
        let seen = inspect(&mut bench);
        assert_eq!(seen.state, "exclusive");
        assert_eq!(seen.holders, [(String::new(), 1, -1, 0)]);
    }
}

#[test]
fn those_that_share_are_told_each_with_its_own_token() {
    let server = RedisServer::start();
    for (mode, state, permits, of) in [("r", "readers", 1, ""), ("2/9", "permits", 2, "/9")] {
        let mut bench = Bench::new(&server);
        let owners = [1, 2].map(owner);
        let tokens = owners
            .each_ref()
            .map(|one| bench.granted(Ask::once(one).with_mode(mode)));
        assert!(bench.renew_as(mode, &owners[0], 2 * TTL, None));
        let seen = inspect(&mut bench);
        assert_eq!((&*seen.state, &*seen.of), (state, of));
        assert_eq!(seen.out, if mode == "r" { 0 } else { 4 });
        let holders: Vec<_> = seen
            .holders
            .iter()
            .map(|one| (&*one.0, one.1, one.3))
            .collect();
        let expected = [
            ("host/12/2", permits, tokens[1]),
            ("host/12/1", permits, tokens[0]),
        ];
        assert_eq!(holders, expected, "the lease that ends first is the first");
        // Asked again, with the same token.
        let again = bench.granted(Ask::once(&owners[0]).with_mode(mode));
        let seen = inspect(&mut bench);
        assert_eq!(again, tokens[0]);
        assert!(seen.holders.iter().any(|one| one.3 == again), "{seen:?}");
    }
}

#[test]
fn leases_that_are_over_are_not_told() {
    let server = RedisServer::start();
    for mode in ["r", "2/9"] {
        let mut bench = Bench::new(&server);
        bench.granted(Ask::once(&owner(1)).with_mode(mode).with_ttl(1));
        bench.granted(Ask::once(&owner(2)).with_mode(mode));
        std::thread::sleep(std::time::Duration::from_millis(5));
        let seen = inspect(&mut bench);
        assert_eq!(seen.holders.len(), 1, "{seen:?}");
        assert_eq!(seen.out, if mode == "r" { 0 } else { 2 });
    }
}

#[test]
fn lock_that_stays_taken_has_no_holder() {
    let server = RedisServer::start();
    for (mode, state) in [("x", "kept"), ("r", "kept"), ("2/3", "permits")] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once(&owner(1)).with_mode(mode));
        let counter = (token + 1).to_string();
        bench
            .run(
                Verb::Release,
                false,
                &[&owner(1), &counter, mode, "", "60000"],
            )
            .unwrap();
        let seen = inspect(&mut bench);
        assert_eq!((&*seen.state, seen.holders.len()), (state, 0));
        assert!((50_000..=60_000).contains(&seen.remaining));
        assert_eq!(seen.out, if mode == "2/3" { 2 } else { 0 });
    }
}

#[test]
fn waiters_are_told_in_their_order_but_for_those_that_are_gone() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let _ears = Ears::on(&mut connection, &["heard"]);
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
    assert_eq!(names(&seen.queue), public(&[2, 5, 6]));
    let modes: Vec<_> = seen.queue.iter().map(|(_, mode)| &**mode).collect();
    assert_eq!(modes, ["x", "w", "2/3"]);
    assert_eq!(names(&seen.readers), public(&[7, 8]));
    break_lock(&mut bench);
    assert_eq!(inspect(&mut bench).holders.len(), 2, "the readers");
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
    let answer = bench.run(Verb::Inspect, false, &[]).expect("inspect");
    type Rest = (Vec<Shown>, Vec<Waiter>, Vec<Waiter>);
    let redis::Value::Array(parts) = answer else {
        panic!("{answer:?}")
    };
    let (holders, queue, _): Rest = read(redis::Value::Array(parts[6..].to_vec()));
    assert_eq!((holders.len(), queue.len()), (1_000, 1_000));
}
