//! The value that a lock protects.

use super::TTL;
use super::ask::Ask;
use super::bench::Bench;
use support::RedisServer;
use support::scripts::Acquired;

fn value(bench: &mut Bench) -> Option<String> {
    bench.seen().value
}

#[test]
fn value_comes_with_the_grant_and_is_stored_by_the_release() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut before = None;
    for (owner, mode, text) in [("a", "x", "1"), ("b", "w", "\0\u{e9}\r\n"), ("c", "x", "")] {
        let answer = bench.ask(Ask::once(owner).with_mode(mode).with_value());
        let Acquired::Valued(token, found) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(found, before);
        assert!(bench.release_as(mode, owner, Some(token), Some(text)));
        assert_eq!(value(&mut bench).as_deref(), Some(text));
        assert_eq!(bench.seen().pttls[6], -1, "it stays");
        before = Some(text.to_owned());
    }
}

#[test]
fn value_comes_with_a_share_and_with_a_repetition() {
    let server = RedisServer::start();
    for mode in ["x", "r", "1/3"] {
        let mut bench = Bench::new(&server);
        let key = bench.value.clone();
        bench.query::<()>(&["SET", &key, "7"]);
        for _ in 0..2 {
            match bench.ask(Ask::once("a").with_mode(mode).with_value()) {
                Acquired::Valued(_, Some(found)) => assert_eq!(found, "7"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn waiter_that_is_handed_the_lock_finds_what_the_release_stored() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    bench.wait("b", "");
    assert!(bench.release_as("x", "a", Some(token), Some("7")));
    match bench.ask(Ask::waiting("b", TTL, "").with_value()) {
        Acquired::Valued(_, Some(found)) => assert_eq!(found, "7"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nobody_but_the_exclusive_owner_stores_a_value() {
    let server = RedisServer::start();
    for crowded in [false, true] {
        let mut bench = Bench::new(&server);
        let first = bench.token("a");
        bench.expire();
        let token = bench.token("b");
        if crowded {
            bench.wait("c", "");
        }
        for (mode, token) in [("x", Some(first)), ("x", None), ("r", Some(first))] {
            assert!(!bench.release_as(mode, "a", token, Some("stale")));
            assert!(!bench.renew_as(mode, "a", TTL, Some("stale")));
            assert_eq!(bench.downgrade("a", first, TTL, Some("stale")), None);
        }
        assert_eq!(value(&mut bench), None);
        assert!(bench.renew_as("x", "b", TTL, Some("1")));
        assert_eq!(value(&mut bench).as_deref(), Some("1"));
        assert!(bench.release_as("x", "b", Some(token), Some("2")));
        assert_eq!(value(&mut bench).as_deref(), Some("2"));
        // Repeated for a reply that was lost, when somebody may have stored another.
        let key = bench.value.clone();
        bench.query::<()>(&["SET", &key, "3"]);
        bench.release_as("x", "b", Some(token), Some("2"));
        assert_eq!(value(&mut bench).as_deref(), Some("3"));
    }
}

#[test]
fn owner_that_gives_up_stores_its_value_if_it_holds_the_lock() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    assert!(bench.release_as("x", "a", None, Some("7")));
    assert!(!bench.release_as("x", "a", None, Some("8")));
    assert_eq!(value(&mut bench).as_deref(), Some("7"));
}

#[test]
fn downgrade_stores_the_value_once() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.downgrade("a", token, TTL, Some("7")).is_some());
    assert_eq!(value(&mut bench).as_deref(), Some("7"));
    assert!(bench.downgrade("a", token, TTL, Some("8")).is_some());
    assert_eq!(value(&mut bench).as_deref(), Some("7"));
}

#[test]
fn value_of_another_type_is_an_error_that_leaves_the_lock_free() {
    let server = RedisServer::start();
    for mode in ["x", "r", "1/3"] {
        let mut bench = Bench::new(&server);
        let key = bench.value.clone();
        bench.query::<()>(&["SADD", &key, "member"]);
        let ask = Ask::once("a").with_mode(mode).with_value();
        let error = bench.try_ask(ask).unwrap_err();
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
        bench.delete(&key);
        assert_eq!(bench.contents(), (None, None));
    }
}
