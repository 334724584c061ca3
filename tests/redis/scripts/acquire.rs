//! What `lock/acquire.lua` does where nobody waits.

use super::ask::Ask;
use super::bench::Bench;
use super::seen::{is_full, next_token};
use super::{COUNTER_TTL, FULL};
use support::RedisServer;
use support::scripts::Acquired;

#[test]
fn free_lock_is_granted_with_a_token_and_a_ttl() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let before = bench.micros();
    let token = bench.token("a");
    let after = bench.micros();
    assert!((next_token(0, before)..=next_token(0, after)).contains(&token));
    assert_eq!(token % 4, 1);
    assert_eq!(bench.contents(), (Some("a".into()), Some(token)));
    let [lock, fence, ..] = bench.seen().pttls;
    assert!(is_full(lock, FULL), "{lock}");
    assert!(is_full(fence, COUNTER_TTL), "{fence}");
    assert_eq!(server.keys().len(), 2);
}

#[test]
fn taken_lock_is_told_for_how_long_and_left_alone() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    let before = bench.contents();
    match bench.ask(Ask::once("b")) {
        Acquired::Taken {
            remaining,
            counter,
            stood: false,
            known: true,
            length: 0,
            holder: None,
        } => {
            assert!(is_full(remaining, FULL), "{remaining}");
            assert_eq!(Some(counter), before.1);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.contents(), before);
    bench.seen().assert_every_key_expires();
}

#[test]
fn lock_of_a_holder_without_a_ttl_is_taken_for_an_unknown_time() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let lock = bench.lock.clone();
    bench.query::<()>(&["SET", &lock, "somebody"]);
    let taken = Acquired::Taken {
        remaining: -1,
        counter: 0,
        stood: false,
        known: false,
        length: 0,
        holder: None,
    };
    assert_eq!(bench.ask(Ask::once("a")), taken);
    assert_eq!(bench.contents(), (Some("somebody".into()), None));
    assert_eq!(bench.seen().pttls, [-1, -2, -2, -2, -2, -2, -2]);
}

#[test]
fn repeated_acquire_gives_the_same_token_and_a_full_ttl() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    let lock = bench.lock.clone();
    bench.query::<()>(&["PEXPIRE", &lock, "5000"]);
    assert_eq!(bench.token("a"), token);
    assert!(is_full(bench.seen().pttls[0], FULL));
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
    assert_eq!(bench.seen().counter, Some(anew));
    bench.seen().assert_every_key_expires();
}

#[test]
fn counter_that_is_none_is_a_conflict_and_is_left_alone() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for text in ["", "text", "-1", "1.5", "nan", "inf", "9007199254740992"] {
        bench.set_counter(text);
        for ask in [Ask::once("a"), Ask::waiting("a", 1_000, "")] {
            let error = bench.try_ask(ask).unwrap_err();
            assert_eq!(error.code(), Some("CONFLICT"), "{text:?}: {error}");
            assert!(error.to_string().contains(&bench.fence), "{error}");
            assert_eq!(server.keys(), [bench.fence.as_str()], "{text:?}");
            assert_eq!(server.get(&bench.fence).as_deref(), Some(text));
        }
    }
}

#[test]
fn keys_of_another_type_are_an_error_and_left_alone() {
    let server = RedisServer::start();
    // A line without its lock; without a line nobody looks at the last key.
    for wrong in 0..3 {
        let mut bench = Bench::new(&server);
        let keys = bench.keys();
        bench.query::<()>(&["SADD", &keys[wrong], "member"]);
        for ask in [Ask::once("a"), Ask::waiting("a", 1_000, "")] {
            let text = bench.try_ask(ask).unwrap_err().to_string();
            let expected = ["WRONGTYPE", "CONFLICT"];
            assert!(expected.iter().any(|code| text.contains(code)), "{text}");
        }
        let members: Vec<String> = bench.query(&["SMEMBERS", &keys[wrong]]);
        assert_eq!(members, ["member"]);
        let all = keys.iter().map(String::as_str);
        let exist: Vec<_> = ["EXISTS"].into_iter().chain(all).collect();
        assert_eq!(bench.query::<usize>(&exist), 1);
    }
}
