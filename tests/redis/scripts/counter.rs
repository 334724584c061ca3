//! How fencing tokens are counted.

use redis::Value;

use super::HAND_OVERS;
use super::ask::Ask;
use super::bench::Bench;
use super::seen::next_token;
use support::RedisServer;

/// Above this, not every integer is a double.
pub(crate) const EXACT: u64 = 1 << 53;
/// The largest step from one token to the next while the clock stands still.
const STEP: u64 = 2 * HAND_OVERS + 8;

#[test]
fn token_is_no_smaller_than_the_time_in_microseconds() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for stored in [0, 1, 2, 3, 1_000_001] {
        bench.set_counter(&stored.to_string());
        let before = bench.micros();
        let token = bench.token("a");
        let after = bench.micros();
        let expected = next_token(stored, before)..=next_token(stored, after);
        assert!(expected.contains(&token), "{stored}: {token}");
        assert_eq!(token % 4, if stored % 2 == 1 { 3 } else { 1 });
        bench.forget_holder();
    }
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
        assert_eq!(token, next_token(stored, 0), "after {stored}");
        assert_eq!(token % 2, 1);
        if stored % 2 == 1 && stored % 8 != 7 {
            assert!(token >= stored + 2 * HAND_OVERS + 2);
        }
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
                assert_eq!(token, next_token(stored, 0), "after {stored}");
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
