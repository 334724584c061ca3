//! What scripts cost the server: how many commands they carry out, and that this doesn't grow with who waits or shares.

use super::ask::{Ask, owner};
use super::bench::Bench;
use super::{PATIENCE, TTL};
use support::{RedisServer, wait_until};

/// How many commands scripts have carried out since the statistics were reset, EVALSHA itself not counted.
fn commands(bench: &mut Bench) -> u64 {
    let stats: String = bench.query(&["INFO", "commandstats"]);
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let ours = ["eval", "script", "info", "config", "acl", "auth"];
        let is_ours = ours.iter().any(|start| name.starts_with(start));
        let calls = rest.split_once(',')?.0.parse::<u64>().ok()?;
        (!is_ours).then_some(calls)
    });
    calls.sum()
}

fn reset(bench: &mut Bench) {
    bench.query::<()>(&["CONFIG", "RESETSTAT"]);
}

#[test]
fn cycle_is_six_commands_or_for_one_that_shares_twelve_its_token_included() {
    let server = RedisServer::start();
    for (mode, expected) in [("x", 6), ("r", 12), ("1/3", 12)] {
        let mut bench = Bench::new(&server);
        for is_first in [true, false] {
            let token = bench.granted(Ask::once("a").with_mode(mode));
            assert!(bench.release_as(mode, "a", Some(token)));
            if is_first {
                reset(&mut bench);
            }
        }
        assert_eq!(commands(&mut bench), expected, "{mode}");
    }
}

#[test]
fn cycle_after_a_break_is_over_is_as_short_as_before() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.granted(Ask::once(&owner(1)).with_ttl(50));
    bench.break_lock().expect("break");
    let token = bench.token("b");
    assert!(bench.release("b", Some(token)));
    let over = || {
        !bench.seen().has_broken || {
            let token = bench.token("b");
            !bench.release("b", Some(token))
        }
    };
    wait_until("the break to be over", PATIENCE, over);
    reset(&mut bench);
    let token = bench.token("b");
    assert!(bench.release("b", Some(token)));
    assert_eq!(commands(&mut bench), 6);
}

#[test]
fn contended_acquisition_and_its_hand_off_are_fifteen_commands_or_two_more_in_an_empty_queue() {
    const INBOX: &str = "an inbox";
    let server = RedisServer::start();
    let mut listener = server.connection();
    let mut listener = listener.as_pubsub();
    listener.subscribe(INBOX).unwrap();
    for waiting in [1, 2, 8] {
        let mut bench = Bench::new(&server);
        let owner = |number: usize| format!("owner {number}");
        let mut last = bench.token(&owner(0));
        (1..waiting).for_each(|number| bench.wait(&owner(number), INBOX));
        reset(&mut bench);
        for number in 0..20 {
            bench.wait(&owner(number + waiting), INBOX);
            assert!(bench.release(&owner(number), Some(last)));
            let message = listener.get_message().unwrap();
            let text: String = message.get_payload().unwrap();
            last = text.rsplit_once(' ').unwrap().1.parse().unwrap();
        }
        let each = commands(&mut bench) / 20;
        let most = if waiting == 1 { 17 } else { 15 };
        assert!(each <= most, "{each} with {waiting} waiting");
    }
}

/// The least that one of some calls took inside the server, in microseconds.
fn least(bench: &mut Bench, mut call: impl FnMut(&mut Bench)) -> u64 {
    let took = |bench: &mut Bench| {
        let stats: String = bench.query(&["INFO", "commandstats"]);
        let line = stats
            .lines()
            .find(|line| line.starts_with("cmdstat_evalsha"));
        let usec = line.and_then(|line| line.split_once(",usec="));
        usec.map_or(0, |(_, rest)| {
            rest.split_once(',').unwrap().0.parse::<u64>().unwrap()
        })
    };
    let calls = (0..30).map(|_| {
        reset(bench);
        call(bench);
        took(bench)
    });
    calls.min().unwrap().max(10)
}

#[test]
fn renewal_and_permits_cost_the_same_however_many_are_out() {
    let server = RedisServer::start();
    let cost = |out: usize| {
        let mut bench = Bench::new(&server);
        bench.granted(Ask::once("own").with_mode("1/9999"));
        for number in 1..out {
            bench.granted(Ask::once(&format!("other {number}")).with_mode("1/9999"));
        }
        let renewal = least(&mut bench, |bench| {
            assert!(bench.renew_as("1/9999", "own", TTL));
        });
        let one_more = least(&mut bench, |bench| {
            bench.granted(Ask::once("another").with_mode("1/9999"));
            assert!(bench.release_as("1/9999", "another", None));
        });
        assert_eq!(bench.permits(), i64::try_from(out).unwrap());
        (renewal, one_more)
    };
    let (few, many) = (cost(10), cost(4_000));
    assert!(many.0 <= 5 * few.0, "renewals: {many:?} us after {few:?}");
    assert!(many.1 <= 5 * few.1, "permits: {many:?} us after {few:?}");
}

#[test]
fn heartbeat_costs_the_same_however_long_the_line_is() {
    let server = RedisServer::start();
    let cost = |length: usize| {
        let mut bench = Bench::new(&server);
        bench.token("a");
        bench.wait("first", "");
        let queue = bench.queue.clone();
        for _ in 0..length / 1_000 {
            let mut more = vec!["RPUSH", &queue];
            more.resize(1_002, "one that waits");
            bench.query::<()>(&more);
        }
        bench.wait("last", "");
        least(&mut bench, |bench| bench.wait("last", ""))
    };
    let (short, long) = (cost(1), cost(200_000));
    assert!(long <= 5 * short, "{long} us after {short}");
}
