//! The scripts of `lua/`, run as they are: what they cost the server, how long keys last, large counters, and a counter
//! that was lost. What else they do is compared in simulated worlds and on all engines.

#![cfg(feature = "redis")]

mod bench;

use bench::Bench;
use redis::Value;
use support::RedisServer;
use support::scripts::Acquired;

const TTL: u64 = 60_000;
const INBOX: &str = "an inbox";

/// What the server has carried out since its statistics were reset: commands, EVALSHA itself not counted, and
/// microseconds in EVALSHA.
fn cost(bench: &mut Bench) -> (u64, u64) {
    let (mut commands, mut micros) = (0, 0);
    let stats: String = bench.query(&["INFO", "commandstats"]);
    for line in stats.lines() {
        let Some((name, rest)) = line
            .strip_prefix("cmdstat_")
            .and_then(|line| line.split_once(":calls="))
        else {
            continue;
        };
        let mut numbers = rest.split([',', '=']).map(str::parse::<u64>);
        let calls = numbers.next().expect("calls").expect("a number");
        let others = ["eval", "script", "info", "config", "acl", "auth"];
        if name == "evalsha" {
            micros = numbers.nth(1).expect("usec").expect("a number");
        } else if !others.iter().any(|other| name.starts_with(other)) {
            commands += calls;
        }
    }
    (commands, micros)
}

fn reset(bench: &mut Bench) {
    bench.query::<()>(&["CONFIG", "RESETSTAT"]);
}

#[test]
fn cycle_is_six_commands_or_for_one_that_shares_twelve_its_token_included() {
    let server = RedisServer::start();
    for (mode, expected) in [("x", 6), ("r", 12), ("1/3", 12)] {
        let mut bench = Bench::new(&server);
        for _ in 0..2 {
            reset(&mut bench);
            let token = bench.token(mode, "a");
            bench.release(mode, "a", token);
        }
        assert_eq!(cost(&mut bench).0, expected, "{mode}");
    }
}

#[test]
fn contended_acquisition_and_its_hand_off_are_fifteen_commands_or_two_more_in_an_empty_queue() {
    let server = RedisServer::start();
    let mut listener = server.connection();
    let mut listener = listener.as_pubsub();
    listener.subscribe(INBOX).unwrap();
    for waiting in [1, 2, 8] {
        let mut bench = Bench::new(&server);
        let owner = |number: usize| format!("owner {number}");
        let mut last = bench.token("x", &owner(0));
        (1..waiting).for_each(|number| bench.wait(&owner(number), INBOX));
        reset(&mut bench);
        for number in 0..20 {
            bench.wait(&owner(number + waiting), INBOX);
            bench.release("x", &owner(number), last);
            let message = listener.get_message().unwrap();
            let text: String = message.get_payload().unwrap();
            last = text.rsplit_once(' ').unwrap().1.parse().unwrap();
        }
        let each = cost(&mut bench).0 / 20;
        let most = if waiting == 1 { 17 } else { 15 };
        assert!(each <= most, "{each} with {waiting} waiting");
    }
}

#[test]
fn heartbeat_costs_the_same_however_long_the_line_is() {
    let server = RedisServer::start();
    let least = |length: usize| {
        let mut bench = Bench::new(&server);
        bench.token("x", "a");
        bench.wait("first", "");
        let queue = bench.key(":queue");
        for _ in 0..length / 1_000 {
            let mut more = vec!["RPUSH", &queue];
            more.resize(1_002, "one that waits");
            bench.query::<()>(&more);
        }
        bench.wait("last", "");
        let costs = (0..30).map(|_| {
            reset(&mut bench);
            bench.wait("last", "");
            cost(&mut bench).1
        });
        costs.min().expect("some").max(10)
    };
    let (short, long) = (least(1), least(200_000));
    assert!(long <= 5 * short, "{long} us after {short}");
}

/// More dead ones stand before the waiter than a release looks at, and some behind it.
#[test]
fn waiter_behind_and_before_many_dead_ones_is_served_without_a_heartbeat() {
    /// The same as in `lua/lib/constants.lua`.
    const MOST_DROPPED: usize = 64;
    let server = RedisServer::start();
    let mut ears = server.connection();
    let mut ears = ears.as_pubsub();
    ears.subscribe(INBOX).unwrap();
    let mut bench = Bench::new(&server);
    let token = bench.token("x", "a");
    for number in 0..=MOST_DROPPED {
        bench.wait(&format!("dead {number}"), "closed");
    }
    bench.wait("b", INBOX);
    for owner in ["last", "very last"] {
        bench.wait(owner, "closed");
    }
    bench.release("x", "a", token);
    for _ in 0..3 {
        // It is told to ask, and is let in then.
        let message = ears.get_message().unwrap();
        assert_eq!(message.get_payload::<String>().unwrap(), "b 0");
        for _ in 0..3 {
            match bench.ask("b", INBOX) {
                Acquired::Token(_) => return,
                Acquired::Taken { remaining: 0, .. } => {}
                other => panic!("it asks at its next heartbeat: {other:?}"),
            }
        }
    }
    panic!("it isn't served");
}

#[test]
fn counter_and_lines_last_for_a_day_after_each_call() {
    let server = RedisServer::start();
    for mode in ["x", "r", "1/3"] {
        let mut bench = Bench::new(&server);
        // Makes what there is last for a minute, and after the call for a day again.
        let last = |bench: &mut Bench, keys: &[&str], call: &mut dyn FnMut(&mut Bench)| {
            let keys: Vec<_> = keys.iter().map(|suffix| bench.key(suffix)).collect();
            for key in &keys {
                bench.query::<()>(&["PEXPIRE", key, "60000"]);
            }
            call(bench);
            for key in &keys {
                let left: i64 = bench.query(&["PTTL", key]);
                assert!((86_390_000..=86_400_000).contains(&left), "{key}: {left}");
            }
        };
        let fence = &[":fence"][..];
        let mut token = 0;
        last(&mut bench, fence, &mut |bench| {
            token = bench.token(mode, "a")
        });
        last(&mut bench, fence, &mut |bench| bench.renew(mode, "a"));
        bench.wait("b", "");
        let lines = [":queue", ":waiters"];
        last(&mut bench, &lines, &mut |bench| bench.wait("b", ""));
        last(&mut bench, fence, &mut |bench| {
            bench.release(mode, "a", token);
        });
    }
}

/// Above this, not every integer is a double.
const EXACT: u64 = 1 << 53;

#[test]
fn counter_ahead_of_the_clock_goes_on_from_itself_and_loses_no_digit() {
    /// More than the largest step from one token to the next.
    const STEP: u64 = 4_096;
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let (lock, fence) = (bench.key(""), bench.key(":fence"));
    let near = [EXACT / 2, EXACT - 100_000, EXACT - 4 * STEP];
    let far = near.iter().flat_map(|start| *start..start + 8);
    for stored in far.chain((EXACT - STEP..EXACT).step_by(5)) {
        let text = stored.to_string();
        bench.query::<()>(&["SET", &fence, &text, "PX", "60000"]);
        match bench.try_ask("x", "a") {
            Ok(Value::Int(token)) => {
                let next = u64::try_from(token).unwrap();
                assert!(next > stored && next <= stored + STEP && next < EXACT);
                assert_eq!(server.get(&fence), Some(token.to_string()));
            }
            // There is no larger one.
            Err(error) => {
                assert!(stored >= EXACT - STEP);
                assert_eq!(error.code(), Some("CONFLICT"), "{error}");
                assert_eq!(server.get(&fence), Some(text));
                assert_eq!(server.get(&lock), None);
            }
            other => panic!("{other:?}"),
        }
        bench.query::<()>(&["DEL", &lock]);
    }
}

/// The lock was deleted, and the counter was lost and began anew below the token of a late copy.
#[test]
fn reader_that_a_late_copy_let_in_above_the_counter_had_lost_its_lease() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let (lock, fence) = (bench.key(""), bench.key(":fence"));
    let token = bench.token("r", "a");
    bench.query::<()>(&["DEL", &lock]);
    let later = bench.token("r", "a");
    assert!(later > token);
    bench.query::<()>(&["SET", &fence, &(token - 8).to_string()]);
    assert_eq!(bench.try_release("r", "a", token), Value::Int(2));
    assert_eq!(server.get(&lock), None);
}
