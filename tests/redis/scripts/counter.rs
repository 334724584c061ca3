//! How fencing tokens are counted where the counter is ahead of the clock.

use redis::Value;

use super::HAND_OVERS;
use super::ask::Ask;
use super::bench::Bench;
use support::RedisServer;

/// Above this, not every integer is a double.
const EXACT: u64 = 1 << 53;
/// The largest step from one token to the next while the clock stands still.
const STEP: u64 = 2 * HAND_OVERS + 8;

/// The token after `stored` of an exclusive holder, by the rules of `lib/token.lua`.
fn next_token(stored: u64) -> u64 {
    // Above all that an exclusive holder may have used who didn't release.
    let is_abandoned = stored % 2 == 1 && stored % 8 != 7;
    let floor = stored + if is_abandoned { 2 * HAND_OVERS + 1 } else { 1 };
    let is_next = |token: &u64| {
        if stored % 2 == 1 {
            token % 8 == 3
        } else {
            token % 4 == 1
        }
    };
    (floor..).find(is_next).expect("one of eight")
}

#[test]
fn counter_ahead_of_the_clock_goes_on_from_itself_with_all_digits() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let hour = bench.micros() + 3_600_000_000;
    let near = [hour, EXACT / 2, EXACT - 100_000, EXACT - 4 * STEP];
    for stored in near.iter().flat_map(|start| *start..start + 8) {
        bench.set_counter(&stored.to_string());
        let token = bench.token("a");
        assert_eq!(token, next_token(stored), "after {stored}");
        assert_eq!(server.get(&bench.fence), Some(token.to_string()));
        assert_eq!(bench.token("a"), token, "repeated after {stored}");
        bench.forget_holder();
    }
}

#[test]
fn counter_at_its_end_loses_no_digit() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for stored in (EXACT - STEP..EXACT).step_by(5) {
        bench.set_counter(&stored.to_string());
        match bench.try_ask(Ask::once("a")) {
            Ok(Value::Int(token)) => {
                let token = u64::try_from(token).unwrap();
                assert_eq!(token, next_token(stored), "after {stored}");
                assert_eq!(server.get(&bench.fence), Some(token.to_string()));
            }
            Err(error) => {
                assert_eq!(error.code(), Some("CONFLICT"), "{error}");
                assert_eq!(bench.contents(), (None, Some(stored)));
            }
            other => panic!("{other:?}"),
        }
        bench.forget_holder();
    }
}
