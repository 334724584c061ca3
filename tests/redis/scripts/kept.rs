//! Locks that stay taken for a while after they were released.

use redis::Value;

use super::ask::Ask;
use super::bench::Bench;
use super::seen::{Ears, is_full};
use super::{FULL, PATIENCE, TTL};
use support::scripts::{Acquired, Verb};
use support::{RedisServer, wait_until};

const INBOX: &str = "an inbox";
const KEPT: Option<&str> = Some("crosslock:kept");

/// Releases, and keeps the lock taken for so many milliseconds.
fn keep(bench: &mut Bench, mode: &str, owner: &str, token: u64, millis: u64) -> Value {
    let (counter, millis) = ((token + 1).to_string(), millis.to_string());
    let arguments = [owner, &counter, mode, "", &millis];
    bench.run(Verb::Release, false, &arguments).unwrap()
}

#[test]
fn lock_stays_taken_without_a_holder_until_the_time_is_over() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert_eq!(keep(&mut bench, "x", "a", token, TTL), Value::Int(1));
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), KEPT);
    assert_eq!(seen.counter, Some(token + 1), "it was released");
    assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
    assert!(!bench.renew("a", 9 * TTL), "it is nobody's");
    // Asked again, because the answer was lost, it says the same and changes nothing.
    assert_eq!(keep(&mut bench, "x", "a", token, 9 * TTL), Value::Int(1));
    assert_eq!(bench.seen().contents(), seen.contents());
    for mode in ["x", "w", "r", "R", "1/3"] {
        match bench.ask(Ask::once("b").with_mode(mode)) {
            Acquired::Taken {
                remaining,
                known: true,
                ..
            } => assert!(is_full(remaining, FULL)),
            other => panic!("{mode}: {other:?}"),
        }
    }
    bench.expire();
    assert_eq!(bench.token("b") % 4, 1, "nothing was abandoned");
}

#[test]
fn those_that_wait_are_let_in_when_it_is_over_and_in_their_order() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    let token = bench.token("a");
    bench.wait("b", INBOX);
    assert_eq!(keep(&mut bench, "x", "a", token, 300), Value::Int(1));
    assert_eq!(bench.seen().line(), ["b"]);
    bench.wait("c", INBOX);
    // No token: it is to ask how long the lock stays taken.
    let told = [(INBOX.to_owned(), "b 0".to_owned())];
    assert_eq!(ears.heard(&mut bench), told);
    wait_until("it to be free", PATIENCE, || {
        bench.seen().holder.as_deref() != KEPT
    });
    bench.refused(Ask::once("d"));
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), Some("b"));
    assert_eq!(seen.counter.unwrap() % 4, 1);
    assert_eq!(seen.line(), ["c"]);
    assert_eq!(ears.heard(&mut bench).len(), 1);
    seen.assert_every_key_expires();
}

#[test]
fn share_or_permit_stays_out_until_the_time_is_over() {
    let server = RedisServer::start();
    for (mode, another, refused) in [("r", "r", "x"), ("2/3", "1/3", "2/3")] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once("a").with_mode(mode));
        for _ in 0..2 {
            assert_eq!(keep(&mut bench, mode, "a", token, 300), Value::Int(1));
        }
        bench.refused(Ask::once("c").with_mode(refused));
        bench.granted(Ask::once("b").with_mode(another));
        assert!(bench.release_as(another, "b", None, None));
        let seen = bench.seen();
        assert!(
            (0..=300).contains(&seen.pttls[0]),
            "{mode}: {:?}",
            seen.pttls
        );
        wait_until("it to come back", PATIENCE, || {
            bench
                .ask(Ask::once("c").with_mode(refused))
                .token()
                .is_some()
        });
    }
}

#[test]
fn permits_that_a_late_copy_has_kept_twice_are_counted_once() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for _ in 0..2 {
        let token = bench.granted(Ask::once("a").with_mode("2/5"));
        assert_eq!(keep(&mut bench, "2/5", "a", token, TTL), Value::Int(1));
    }
    assert_eq!(bench.permits(), 2);
    bench.granted(Ask::once("b").with_mode("3/5"));
}

#[test]
fn reader_is_told_to_ask_though_the_first_of_the_others_must_not_be_told() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &["denied", "allowed"]);
    let token = bench.token("a");
    bench.wait("writer", "denied");
    bench.wait_to("r", "reader", "allowed");
    bench.may_publish_only_to("allowed");
    assert_eq!(keep(&mut bench, "x", "a", token, TTL), Value::Int(1));
    let told = [("allowed".to_owned(), "reader 0".to_owned())];
    assert_eq!(ears.heard(&mut bench), told);
}
