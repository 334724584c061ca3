//! How long keys last, and what becomes of them without memory.

use super::ask::Ask;
use super::bench::Bench;
use super::seen::is_full;
use super::{COUNTER_TTL, TTL};
use support::RedisServer;

/// They last no more than a minute, whatever they did.
fn shorten(bench: &mut Bench, keys: std::ops::Range<usize>) {
    for key in &bench.keys()[keys] {
        bench.query::<()>(&["PEXPIRE", key, "60000"]);
    }
}

#[track_caller]
fn assert_counter_lasts(bench: &mut Bench) {
    let seen = bench.seen();
    assert!(is_full(seen.pttls[1], COUNTER_TTL), "{seen:?}");
}

#[test]
fn counter_lasts_for_a_day_after_each_call_of_a_holder() {
    let server = RedisServer::start();
    for mode in ["x", "r", "1/3"] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once("a").with_mode(mode));
        assert_counter_lasts(&mut bench);
        shorten(&mut bench, 1..2);
        assert!(bench.renew_as(mode, "a", TTL));
        assert_counter_lasts(&mut bench);
        bench.wait("b", "");
        assert!(bench.release_as(mode, "a", Some(token)));
        assert_counter_lasts(&mut bench);
        assert!(bench.release("b", None));
        assert_counter_lasts(&mut bench);
    }
}

#[test]
fn line_lasts_for_a_day_after_each_heartbeat() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    for _ in 0..2 {
        for (mode, owner) in [("x", "b"), ("r", "c"), ("x", "d")] {
            bench.wait_to(mode, owner, "");
        }
        let lines = &bench.seen().pttls[2..5];
        assert!(
            lines.iter().all(|pttl| is_full(*pttl, COUNTER_TTL)),
            "{lines:?}"
        );
        shorten(&mut bench, 2..5);
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

#[test]
fn counter_lives_for_a_day_after_its_use_or_almost() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let fence = bench.fence.clone();
    let hour = 3_600_000_000;
    let now = bench.micros();
    // From an earlier hour, and ahead of the clock.
    for stored in [now - 2 * hour, now + 2 * hour] {
        bench.set_counter(&(stored / 4 * 4 + 2).to_string());
        let token = bench.token("a");
        assert!(is_full(bench.seen().pttls[1], COUNTER_TTL));
        assert!(bench.release("a", Some(token)));
        assert_eq!(bench.seen().counter, Some(token + 1));
        bench.delete(&fence);
    }
}

#[test]
fn shares_are_renewed_and_released_without_memory() {
    let server = RedisServer::start();
    for mode in ["r", "1/9"] {
        let mut bench = Bench::new(&server);
        for owner in ["a", "b", "c"] {
            bench.granted(Ask::once(owner).with_mode(mode));
        }
        bench.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        assert!(bench.renew_as(mode, "a", 2 * TTL));
        for owner in ["a", "b", "c"] {
            assert!(bench.release_as(mode, owner, None));
        }
        let error = bench.try_ask(Ask::once("a").with_mode(mode)).unwrap_err();
        // Redis 6.2 says it inside of another error.
        assert!(error.to_string().contains("maxmemory"), "{error}");
        bench.query::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(bench.contents().0, None);
        assert!(bench.seen().shares.is_empty());
    }
}
