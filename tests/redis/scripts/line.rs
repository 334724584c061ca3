//! The line of those that wait: who enters it, who leaves it, and who is served.

use super::ask::Ask;
use super::bench::Bench;
use super::counter::EXACT;
use super::seen::{Ears, is_full};
use super::{COUNTER_TTL, FULL, TTL};
use support::RedisServer;
use support::scripts::Acquired;

pub(crate) const INBOX: &str = "an inbox";

/// A message in the inbox that `owner` has the lock.
pub(crate) fn grant(owner: &str, token: u64) -> Vec<(String, String)> {
    vec![(INBOX.to_owned(), format!("{owner} {token}"))]
}

// Entering and leaving

#[test]
fn who_finds_the_lock_taken_enters_at_the_end_of_the_line() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    let before = bench.micros() / 1_000;
    match bench.ask(Ask::waiting("b", 7_000, INBOX)) {
        Acquired::Taken {
            remaining, counter, ..
        } => {
            assert!(is_full(remaining, FULL), "{remaining}");
            assert_eq!(counter, token);
        }
        granted => panic!("{granted:?}"),
    }
    bench.wait("c", "");
    let seen = bench.seen();
    assert_eq!(seen.line(), ["b", "c"]);
    let (overdue, rest) = seen.waiters["b"].split_once(' ').unwrap();
    let expected = before + 7_000..=seen.micros / 1_000 + 7_000;
    assert!(expected.contains(&overdue.parse().unwrap()), "{overdue}");
    assert_eq!(rest, format!("{TTL} x {INBOX}"));
    assert!(seen.waiters["c"].ends_with(&format!(" {TTL} x ")));
    assert_eq!(bench.contents(), (Some("a".into()), Some(token)));
    let [_, _, queue, waiters, ..] = seen.pttls;
    assert!(is_full(queue, COUNTER_TTL), "{queue}");
    assert!(is_full(waiters, COUNTER_TTL), "{waiters}");
}

#[test]
fn heartbeat_keeps_its_place_and_makes_the_line_last() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    for owner in ["b", "c", "d"] {
        bench.wait(owner, INBOX);
    }
    for key in [bench.queue.clone(), bench.waiters.clone()] {
        bench.query::<()>(&["PEXPIRE", &key, "5000"]);
    }
    bench.refused(Ask::waiting("b", 1_000_000, "another").with_ttl(99_000));
    let seen = bench.seen();
    assert_eq!(seen.line(), ["b", "c", "d"]);
    assert!(seen.waiters["b"].ends_with(" 99000 x another"));
    assert!(seen.pttls[2..4].iter().all(|x| is_full(*x, COUNTER_TTL)));
}

#[test]
fn who_asks_without_waiting_leaves_the_line() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.wait("b", INBOX);
    bench.wait("c", INBOX);
    bench.refused(Ask::once("b"));
    assert_eq!(bench.seen().line(), ["c"]);
    bench.refused(Ask::once("stranger"));
    assert_eq!(bench.seen().line(), ["c"]);
}

#[test]
fn who_gives_up_leaves_the_line() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    for owner in ["b", "c", "d"] {
        bench.wait(owner, INBOX);
    }
    for (owner, left) in [("c", &["b", "d"][..]), ("b", &["d"]), ("d", &[])] {
        assert!(!bench.release(owner, None));
        assert_eq!(bench.seen().line(), left);
    }
    assert_eq!(bench.contents(), (Some("a".into()), Some(token)));
    assert_eq!(server.keys().len(), 2);
}

#[test]
fn refused_release_leaves_the_line_of_the_others_alone() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    bench.wait("b", INBOX);
    let before = bench.seen();
    assert!(!bench.release("stranger", Some(token)));
    assert!(!bench.release("stranger", None));
    assert_eq!(bench.seen().contents(), before.contents());
}

// The hand-off

#[test]
fn release_hands_the_lock_to_the_first_in_line_and_tells_it() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    let mut last = bench.token("a");
    bench.refused(Ask::waiting("b", TTL, INBOX).with_ttl(2 * TTL));
    bench.refused(Ask::waiting("c", TTL, INBOX).with_ttl(3 * TTL));
    let steps = [
        ("a", "b", 2 * FULL, &["c"][..]),
        ("b", "c", 3 * FULL, &[][..]),
    ];
    for (from, to, ttl, left) in steps {
        assert!(bench.release(from, Some(last)));
        let seen = bench.seen();
        assert_eq!(seen.holder.as_deref(), Some(to));
        assert!(is_full(seen.pttls[0], ttl), "{seen:?}");
        assert!(is_full(seen.pttls[1], COUNTER_TTL), "{seen:?}");
        assert_eq!(seen.line(), left);
        let token = seen.counter.unwrap();
        assert!(token > last + 1);
        assert_eq!(token % 4, 1, "nobody abandoned it");
        assert_eq!(ears.heard(&mut bench), grant(to, token));
        // Repeated for a reply that was lost, it changes nothing.
        assert!(!bench.release(from, Some(last)));
        assert_eq!(bench.seen().contents(), seen.contents());
        last = token;
    }
    assert!(bench.release("c", Some(last)));
    assert_eq!(bench.contents(), (None, Some(last + 1)));
    assert_eq!(ears.heard(&mut bench), []);
}

#[test]
fn hand_off_counts_on_from_the_last_token_used_in_the_process() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    bench.set_counter(&(EXACT / 2).to_string());
    let last_used = bench.token("a") + 2 * 7;
    bench.wait("b", INBOX);
    assert!(bench.release("a", Some(last_used)));
    let token = bench.seen().counter.unwrap();
    assert!((last_used + 2..last_used + 6).contains(&token));
    assert_eq!(ears.heard(&mut bench), grant("b", token));
    let counter = server.get(&bench.fence);
    assert_eq!(counter, Some(format!("{token}q")), "all digits");
}

#[test]
fn who_gives_up_after_it_was_granted_the_lock_hands_it_on() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    let token = bench.token("a");
    bench.wait("b", "");
    bench.wait("c", INBOX);
    assert!(bench.release("a", Some(token)));
    assert_eq!(bench.seen().holder.as_deref(), Some("b"));
    assert!(bench.release("b", None));
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), Some("c"));
    assert_eq!(seen.counter.unwrap() % 4, 1);
    let heard = ears.heard(&mut bench);
    assert_eq!(heard, grant("c", seen.counter.unwrap()));
}

#[test]
fn abandonment_that_nobody_was_told_is_handed_on() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.expire();
    let untold = bench.token("b");
    bench.wait("c", "");
    assert!(bench.release("b", None));
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), Some("c"));
    assert!(seen.counter.unwrap() > untold);
    assert_eq!(seen.counter.unwrap() % 4, 3);
}

// A lock that is found free

#[test]
fn free_lock_with_a_line_goes_to_its_head_whoever_asks() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    let asks = [Ask::once("c"), Ask::waiting("c", TTL, INBOX)];
    for (ask, left) in asks.into_iter().zip([&[][..], &["c"]]) {
        let mut bench = Bench::new(&server);
        let lost = bench.token("a");
        bench.wait("b", INBOX);
        bench.expire();
        let answer = bench.ask(ask);
        let seen = bench.seen();
        let token = seen.counter.unwrap();
        assert_eq!(seen.holder.as_deref(), Some("b"));
        assert!(token > lost && token % 4 == 3, "the holder before died");
        match answer {
            Acquired::Taken {
                remaining, counter, ..
            } => {
                assert!(is_full(remaining, FULL), "{remaining}");
                assert_eq!(counter, token);
            }
            granted => panic!("{granted:?}"),
        }
        assert_eq!(seen.line(), left);
        assert_eq!(ears.heard(&mut bench), grant("b", token));
    }
}

#[test]
fn head_of_the_line_that_asks_takes_the_free_lock_and_is_told_once() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    for ask in [Ask::once("b"), Ask::waiting("b", TTL, INBOX)] {
        let mut bench = Bench::new(&server);
        bench.token("a");
        bench.wait("b", INBOX);
        bench.wait("c", INBOX);
        bench.forget_holder();
        let Acquired::Token(token) = bench.ask(ask) else {
            panic!("not granted");
        };
        assert_eq!(bench.contents(), (Some("b".into()), Some(token)));
        let seen = bench.seen();
        assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
        assert_eq!(seen.line(), ["c"]);
        assert_eq!(ears.heard(&mut bench), []);
    }
}

#[test]
fn foreign_client_that_took_the_lock_is_waited_for() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.wait("b", "");
    bench.forget_holder();
    let lock = bench.lock.clone();
    bench.query::<()>(&["SET", &lock, "foreign", "NX", "PX", "60000"]);
    bench.wait("b", "");
    bench.wait("c", "");
    assert_eq!(bench.seen().line(), ["b", "c"]);
    bench.forget_holder();
    bench.wait("c", "");
    assert_eq!(bench.seen().holder.as_deref(), Some("b"));
}

#[test]
fn line_survives_a_counter_that_is_none() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.wait("b", "");
    let line = (bench.seen().line, bench.seen().waiters);
    bench.forget_holder();
    bench.set_counter("text");
    for ask in [Ask::once("b"), Ask::waiting("b", TTL, "")] {
        let error = bench.try_ask(ask).unwrap_err();
        assert_eq!(error.code(), Some("CONFLICT"), "{error}");
    }
    bench.set_counter("7");
    assert_eq!((bench.seen().line, bench.seen().waiters), line);
}

#[test]
fn line_that_is_none_hinders_no_release() {
    let server = RedisServer::start();
    for (wrong, knows) in [(2, true), (3, true), (2, false), (3, false)] {
        let mut bench = Bench::new(&server);
        let token = bench.token("a");
        bench.wait("b", "");
        let key = bench.keys()[wrong].clone();
        bench.delete(&key);
        bench.query::<()>(&["SADD", &key, "member"]);
        assert!(bench.release("a", knows.then_some(token)));
        let [lock, fence, ..] = bench.keys();
        assert_eq!(server.get(&lock), None);
        let counter = server.get(&fence).unwrap();
        assert_eq!(counter.trim_end_matches('q'), (token + 1).to_string());
        let members: Vec<String> = bench.query(&["SMEMBERS", &key]);
        assert_eq!(members, ["member"]);
    }
}

#[test]
fn counter_that_is_none_hinders_no_release() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    bench.wait("b", "");
    let [lock, fence, ..] = bench.keys();
    bench.delete(&fence);
    bench.query::<()>(&["SADD", &fence, "member"]);
    assert!(bench.release("a", Some(token)));
    assert_eq!(server.get(&lock).as_deref(), Some("b"));
}
