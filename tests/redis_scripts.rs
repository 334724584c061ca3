//! The scripts of `lua/`, run as they are: their answers, and what they leave in the server.

#![cfg(feature = "redis")]
// A test that unwraps fails with the error, which is what it is for.
#![allow(clippy::unwrap_used)]

#[path = "redis_scripts/model.rs"]
mod model;
mod support;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use redis::{Connection, RedisResult, Script, Value};
use support::{RedisServer, wait_until};

const TTL: u64 = 60_000;
const COUNTER_TTL: i64 = 86_400_000;
const HAND_OVERS: u64 = 1024;
/// Above this, not every integer is a double.
const EXACT: u64 = 1 << 53;
/// The largest step from one token to the next while the clock stands still.
const STEP: u64 = 2 * HAND_OVERS + 4;
const PATIENCE: Duration = Duration::from_secs(20);

/// One lock of a server, seen through the scripts.
struct Bench {
    connection: Connection,
    lock: String,
    fence: String,
}

/// What `lock_acquire.lua` answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Acquired {
    Token(u64),
    Taken(i64),
}

impl Bench {
    /// A name that nothing else uses.
    fn new(server: &RedisServer) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let lock = format!("{{test:{}}}", NUMBER.fetch_add(1, Relaxed));
        Self {
            connection: server.connection(),
            fence: format!("{lock}:fence"),
            lock,
        }
    }

    fn run(&mut self, code: &str, owner: &str, argument: &str) -> RedisResult<Value> {
        Script::new(code)
            .key(&self.lock)
            .key(&self.fence)
            .arg(owner)
            .arg(argument)
            .invoke(&mut self.connection)
    }

    fn try_acquire(&mut self, owner: &str) -> RedisResult<Value> {
        let ttl = TTL.to_string();
        self.run(include_str!("../lua/lock_acquire.lua"), owner, &ttl)
    }

    fn acquire(&mut self, owner: &str) -> Acquired {
        match self.try_acquire(owner).expect("acquire") {
            Value::Int(token) => Acquired::Token(token.try_into().expect("a positive token")),
            Value::Array(parts) => match parts[..] {
                [Value::Int(remaining)] => Acquired::Taken(remaining),
                _ => panic!("{parts:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn token(&mut self, owner: &str) -> u64 {
        match self.acquire(owner) {
            Acquired::Token(token) => token,
            taken @ Acquired::Taken(_) => panic!("{taken:?}"),
        }
    }

    fn renew(&mut self, owner: &str) -> bool {
        let ttl = TTL.to_string();
        let answer = self.run(include_str!("../lua/lock_renew.lua"), owner, &ttl);
        is_one(&answer.expect("renew"))
    }

    /// Without a token, the owner doesn't know what it was granted.
    fn release(&mut self, owner: &str, token: Option<u64>) -> bool {
        let counter = token.map_or(0, |token| token + 1).to_string();
        let answer = self.run(include_str!("../lua/lock_release.lua"), owner, &counter);
        is_one(&answer.expect("release"))
    }

    fn query<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command
            .arg(&words[1..])
            .query(&mut self.connection)
            .expect("a command of the test")
    }

    fn set_counter(&mut self, value: &str) {
        let fence = self.fence.clone();
        self.query::<()>(&["SET", &fence, value, "PX", "60000"]);
    }

    fn counter(&mut self) -> Option<u64> {
        let fence = self.fence.clone();
        let text: Option<String> = self.query(&["GET", &fence]);
        text.map(|digits| digits.parse().expect("digits and nothing else"))
    }

    fn holder(&mut self) -> Option<String> {
        let lock = self.lock.clone();
        self.query(&["GET", &lock])
    }

    fn delete(&mut self, key: &str) {
        self.query::<()>(&["DEL", key]);
    }

    /// Ends the lease in another way than by a release.
    fn forget_holder(&mut self) {
        let lock = self.lock.clone();
        self.delete(&lock);
    }

    fn expire(&mut self) {
        let lock = self.lock.clone();
        self.query::<()>(&["PEXPIRE", &lock, "1"]);
        wait_until("the lease to end", PATIENCE, || self.holder().is_none());
    }

    fn pttls(&mut self) -> [i64; 2] {
        let keys = [self.lock.clone(), self.fence.clone()];
        keys.map(|key| self.query(&["PTTL", &key]))
    }

    fn server_micros(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = self.query(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    /// Waits until a counter that starts anew is larger than `token`.
    fn wait_for_clock(&mut self, token: u64) {
        wait_until("the clock to pass the counter", PATIENCE, || {
            self.server_micros() > token
        });
    }

    /// All that a script that changes nothing must not change; a ttl only shrinks.
    fn contents(&mut self) -> (Option<String>, Option<u64>) {
        (self.holder(), self.counter())
    }

    #[track_caller]
    fn assert_every_key_expires(&mut self) {
        let [lock, fence] = self.pttls();
        let most = i64::try_from(TTL).expect("it fits");
        assert!(
            lock == -2 || (0..=most).contains(&lock),
            "the lock lasts {lock}"
        );
        assert!(
            fence == -2 || (0..=COUNTER_TTL).contains(&fence),
            "the counter lasts {fence}"
        );
    }
}

fn is_one(answer: &Value) -> bool {
    match answer {
        Value::Int(1) => true,
        Value::Int(0) => false,
        other => panic!("{other:?}"),
    }
}

/// The token after `stored`, by the rules of the script's header.
fn next_token(stored: u64, micros: u64) -> u64 {
    let abandoned = stored % 2 == 1;
    let above_all_used = stored + if abandoned { 2 * HAND_OVERS + 1 } else { 1 };
    let class = if abandoned { 3 } else { 1 };
    (above_all_used.max(micros)..)
        .find(|token| token % 4 == class)
        .expect("one of four")
}

/// Longer than what a key has by then: the end of a full ttl.
fn is_full(pttl: i64, full: i64) -> bool {
    (full - 10_000..=full).contains(&pttl)
}

// Acquire

#[test]
fn free_lock_is_granted_with_a_token_and_a_ttl() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let before = bench.server_micros();
    let token = bench.token("a");
    let after = bench.server_micros();
    assert!((next_token(0, before)..=next_token(0, after)).contains(&token));
    assert_eq!(token % 4, 1);
    assert_eq!(bench.contents(), (Some("a".into()), Some(token)));
    let [lock, fence] = bench.pttls();
    assert!(is_full(lock, 60_000), "{lock}");
    assert!(is_full(fence, COUNTER_TTL), "{fence}");
    assert_eq!(server.keys().len(), 2);
}

#[test]
fn taken_lock_is_told_for_how_long_and_left_alone() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    let before = bench.contents();
    match bench.acquire("b") {
        Acquired::Taken(remaining) => assert!(is_full(remaining, 60_000), "{remaining}"),
        granted @ Acquired::Token(_) => panic!("{granted:?}"),
    }
    assert_eq!(bench.contents(), before);
    bench.assert_every_key_expires();
}

#[test]
fn lock_of_a_holder_without_a_ttl_is_taken_for_an_unknown_time() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let lock = bench.lock.clone();
    bench.query::<()>(&["SET", &lock, "somebody"]);
    assert_eq!(bench.acquire("a"), Acquired::Taken(-1));
    assert_eq!(bench.contents(), (Some("somebody".into()), None));
    assert_eq!(bench.pttls(), [-1, -2]);
}

#[test]
fn repeated_acquire_gives_the_same_token_and_a_full_ttl() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    let lock = bench.lock.clone();
    bench.query::<()>(&["PEXPIRE", &lock, "5000"]);
    assert_eq!(bench.token("a"), token);
    assert!(is_full(bench.pttls()[0], 60_000));
    assert_eq!(bench.contents(), (Some("a".into()), Some(token)));
}

#[test]
fn repeated_acquire_of_an_abandoned_lock_says_abandoned_again() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.expire();
    let token = bench.token("b");
    assert_eq!(token % 4, 3);
    assert_eq!(bench.token("b"), token);
}

#[test]
fn counter_that_is_lost_while_held_is_made_anew_by_the_repetition() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    let fence = bench.fence.clone();
    bench.wait_for_clock(token);
    bench.delete(&fence);
    let anew = bench.token("a");
    assert!(anew > token);
    assert_eq!(bench.counter(), Some(anew));
    bench.assert_every_key_expires();
}

#[test]
fn counter_that_is_none_is_a_conflict_and_is_left_alone() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for text in ["", "text", "-1", "1.5", "nan", "inf", "9007199254740992"] {
        bench.set_counter(text);
        let error = bench.try_acquire("a").unwrap_err();
        assert_eq!(error.code(), Some("CONFLICT"), "{text:?}: {error}");
        assert!(error.to_string().contains(&bench.fence), "{error}");
        assert_eq!(bench.holder(), None, "{text:?}");
        assert_eq!(server.get(&bench.fence).as_deref(), Some(text));
    }
}

#[test]
fn keys_of_another_type_are_an_error_and_left_alone() {
    let server = RedisServer::start();
    for wrong in 0..2 {
        let mut bench = Bench::new(&server);
        let keys = [bench.lock.clone(), bench.fence.clone()];
        bench.query::<()>(&["HSET", &keys[wrong], "field", "value"]);
        for answer in [
            bench.try_acquire("a"),
            bench.run(include_str!("../lua/lock_acquire.lua"), "a", "1000"),
        ] {
            let text = answer.unwrap_err().to_string();
            assert!(
                ["WRONGTYPE", "CONFLICT"]
                    .iter()
                    .any(|code| text.contains(code)),
                "{text}"
            );
        }
        let value: String = bench.query(&["HGET", &keys[wrong], "field"]);
        assert_eq!(value, "value");
        let others: usize = bench.query(&["EXISTS", &keys[1 - wrong]]);
        assert_eq!(others, 0);
    }
}

// Renew

#[test]
fn owner_renews_both_keys() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    for key in [bench.lock.clone(), bench.fence.clone()] {
        bench.query::<()>(&["PEXPIRE", &key, "5000"]);
    }
    assert!(bench.renew("a"));
    let [lock, fence] = bench.pttls();
    assert!(is_full(lock, 60_000), "{lock}");
    assert!(is_full(fence, COUNTER_TTL), "{fence}");
    assert_eq!(bench.contents(), (Some("a".into()), Some(token)));
}

#[test]
fn nobody_else_renews() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    assert!(!bench.renew("a"));
    assert_eq!(server.keys(), [""; 0]);
    bench.token("a");
    for key in [bench.lock.clone(), bench.fence.clone()] {
        bench.query::<()>(&["PEXPIRE", &key, "30000"]);
    }
    let before = bench.contents();
    assert!(!bench.renew("b"));
    assert_eq!(bench.contents(), before);
    assert!(bench.pttls().iter().all(|pttl| *pttl <= 30_000));
}

#[test]
fn lock_that_is_gone_is_not_taken_by_a_renewal() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.expire();
    assert!(!bench.renew("a"));
    assert_eq!(bench.holder(), None);
}

// Release

#[test]
fn owner_releases_and_the_counter_is_even() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.release("a", Some(token)));
    assert_eq!(bench.contents(), (None, Some(token + 1)));
    assert!(is_full(bench.pttls()[1], COUNTER_TTL));
    // The same command again, for a reply that was lost.
    assert!(bench.release("a", Some(token)));
    assert_eq!(bench.contents(), (None, Some(token + 1)));
}

#[test]
fn tokens_that_were_used_in_the_process_are_written_back() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.set_counter(&(EXACT / 2).to_string());
    let last_used = bench.token("a") + 2 * 7;
    assert!(bench.release("a", Some(last_used)));
    assert_eq!(bench.counter(), Some(last_used + 1));
    assert!(bench.token("b") > last_used);
}

#[test]
fn nobody_else_releases() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for token in [None, Some(7)] {
        assert!(!bench.release("a", token));
        assert_eq!(server.keys(), [""; 0]);
    }
    let first = bench.token("a");
    bench.expire();
    bench.token("b");
    let before = bench.contents();
    for (owner, token) in [("a", Some(first)), ("a", None), ("", None)] {
        assert!(!bench.release(owner, token), "{owner:?} {token:?}");
        assert_eq!(bench.contents(), before);
    }
}

#[test]
fn release_after_the_next_holder_came_and_went_is_refused() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let first = bench.token("a");
    assert!(bench.release("a", Some(first)));
    let second = bench.token("b");
    assert!(bench.release("b", Some(second)));
    let before = bench.contents();
    assert!(!bench.release("a", Some(first)));
    assert_eq!(bench.contents(), before);
}

#[test]
fn release_of_an_unknown_token_is_a_clean_one() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.release("a", None));
    assert_eq!(bench.contents(), (None, Some(token + 1)));
    assert!(!bench.release("a", None));
    assert_eq!(bench.token("b") % 4, 1);
}

#[test]
fn release_of_an_unknown_token_is_a_clean_one_also_without_a_counter() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    let fence = bench.fence.clone();
    bench.delete(&fence);
    assert!(bench.release("a", None));
    bench.assert_every_key_expires();
    assert_eq!(bench.token("b") % 4, 1, "nothing was abandoned");
}

#[test]
fn owner_that_never_knew_of_its_grant_leaves_abandonment_to_be_told() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.expire();
    let untold = bench.token("b");
    assert_eq!(untold % 4, 3);
    assert!(bench.release("b", None));
    let told = bench.token("c");
    assert!(told > untold);
    assert_eq!(told % 4, 3, "what the first left behind was told to nobody");
}

// The counter

#[test]
fn token_is_no_smaller_than_the_time_in_microseconds() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for stored in [0, 1, 2, 3, 1_000_001] {
        bench.set_counter(&stored.to_string());
        let before = bench.server_micros();
        let token = bench.token("a");
        let after = bench.server_micros();
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
    let hour = bench.server_micros() + 3_600_000_000;
    let near = [hour, EXACT / 2, EXACT - 100_000, EXACT - 4 * STEP];
    for stored in near.iter().flat_map(|start| *start..start + 8) {
        bench.set_counter(&stored.to_string());
        let token = bench.token("a");
        assert_eq!(token, next_token(stored, 0), "after {stored}");
        assert_eq!(token % 2, 1);
        if stored % 2 == 1 {
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
        match bench.try_acquire("a") {
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
