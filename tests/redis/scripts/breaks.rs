//! Locks that are broken: taken from whoever holds them.

use redis::{FromRedisValue, Value};

use super::ask::Ask;
use super::bench::Bench;
use super::seen::{Ears, next_shared_token, next_token};
use super::{HAND_OVERS, PATIENCE, TTL};
use support::scripts::{Acquired, Verb};
use support::{RedisServer, wait_until};

const INBOX: &str = "an inbox";
/// Where inboxes hear of leases that were broken.
pub(crate) const BROKEN: &str = "inbox:broken";

/// A holder, as others see it: what isn't secret, permits, for how long its lease lasts, token.
pub(crate) type Shown = (String, u64, i64, u64);

/// An owner as the library has them.
pub(crate) fn owner(number: u8) -> String {
    format!("{}/host/12/{number}", id(number))
}

pub(crate) fn id(number: u8) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

/// Breaks the lock, and gives whom it was taken from.
pub(crate) fn break_lock(bench: &mut Bench) -> Vec<Shown> {
    let answer = bench.run(Verb::Break, false, &[BROKEN]);
    let (now, holders): (u64, Vec<Shown>) = read(answer.expect("break"));
    assert!(now <= bench.micros());
    holders
}

pub(crate) fn read<T: FromRedisValue>(answer: Value) -> T {
    T::from_redis_value(answer).expect("what the script answers")
}

fn renewal(bench: &mut Bench, mode: &str, owner: &str) -> Value {
    bench
        .run(Verb::Renew, false, &[owner, "60000", mode])
        .expect("renew")
}

/// A late copy of what the owner has asked for is told so, and leaves nothing behind.
#[track_caller]
fn assert_stays_lost(bench: &mut Bench, ask: Ask<'_>) {
    let before = bench.seen();
    assert_eq!(bench.ask(ask), Acquired::Broken);
    assert_eq!(bench.seen().contents(), before.contents());
}

#[test]
fn exclusive_holder_is_told_that_its_lease_was_broken_and_never_gets_it_back() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let a = owner(1);
    let token = bench.token(&a);
    let broken = break_lock(&mut bench);
    assert_eq!(broken.len(), 1);
    let (public, permits, remaining, shown) = &broken[0];
    assert_eq!((&**public, *permits, *shown), ("host/12/1", 1, token));
    assert!((50_000..=60_000).contains(remaining), "{remaining}");
    let seen = bench.seen();
    assert_eq!(seen.holder, None);
    let counter = seen.counter.unwrap();
    assert!(
        counter > token + 2 * HAND_OVERS && counter % 8 == 5,
        "{counter}"
    );
    assert_eq!(seen.broken.keys().collect::<Vec<_>>(), [&id(1)]);
    seen.assert_every_key_expires();
    for ask in [
        Ask::once(&a),
        Ask::waiting(&a, TTL, INBOX),
        Ask::once(&a).with_mode("r"),
    ] {
        assert_stays_lost(&mut bench, ask);
    }
    assert_eq!(renewal(&mut bench, "x", &a), Value::Int(2));
    assert_eq!(
        bench.run(Verb::Renew, false, &[&a, "0", "x"]),
        Ok(Value::Int(2))
    );
    for known in [Some(token), None, Some(token + 2 * HAND_OVERS)] {
        assert_eq!(bench.release_answer("x", &a, known, Some("lost")), 3);
    }
    assert_eq!(bench.seen().value, None);
    assert_eq!(bench.downgrade(&a, token, TTL, None), None);
    let next = bench.token(&owner(2));
    assert!(next > counter && next % 8 == 3, "it was abandoned: {next}");
    assert_stays_lost(&mut bench, Ask::waiting(&a, TTL, INBOX));
    assert_eq!(renewal(&mut bench, "x", &a), Value::Int(2));
    assert_eq!(bench.release_answer("x", &a, Some(token), None), 3);
    assert!(bench.release(&owner(2), Some(next)));
    assert_stays_lost(&mut bench, Ask::once(&a));
}

#[test]
fn owners_are_named_until_their_leases_would_have_ended() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let (a, b) = (owner(1), owner(2));
    bench.granted(Ask::once(&a).with_ttl(400));
    break_lock(&mut bench);
    bench.granted(Ask::once(&b).with_ttl(1_500));
    break_lock(&mut bench);
    assert_eq!(bench.seen().broken.len(), 2);
    // The next who writes the counter forgets those whose time is over.
    wait_until("the first lease to be over", PATIENCE, || {
        let seen = bench.seen();
        seen.broken[&id(1)] * 1_000 < seen.micros
    });
    bench.granted(Ask::once(&owner(3)).with_ttl(1));
    break_lock(&mut bench);
    wait_until("the others to be over", PATIENCE, || {
        bench.ask(Ask::once(&b)).token().is_some()
    });
    let seen = bench.seen();
    assert!(seen.broken.is_empty(), "{seen:?}");
    let token = bench.token(&b);
    assert!(bench.release(&b, Some(token)));
    let free = bench.seen();
    assert_eq!((free.counter, free.letters.as_str()), (Some(token + 1), ""));
}

#[test]
fn first_in_line_is_let_in_and_told_and_the_others_keep_their_places() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX, BROKEN]);
    let mut bench = Bench::new(&server);
    let (a, b) = (owner(1), owner(2));
    let a_token = bench.token(&a);
    bench.wait(&b, INBOX);
    bench.wait(&owner(3), INBOX);
    bench.wait(&owner(4), INBOX);
    assert_eq!(break_lock(&mut bench).len(), 1);
    let seen = bench.seen();
    assert_eq!(seen.holder.as_ref(), Some(&b));
    assert_eq!(seen.line(), [&owner(3), &owner(4)]);
    let token = seen.counter.unwrap();
    assert_eq!(token % 8, 3, "it is found abandoned");
    assert_eq!(seen.letters, "q");
    let heard = ears.heard(&mut bench);
    let below = heard[0].1.rsplit_once(' ').expect("two words").1;
    assert!((a_token + 1..token).contains(&below.parse().expect("a number")));
    let told = [
        (BROKEN, format!("{a} {below}")),
        (INBOX, format!("{b} {token}")),
    ];
    assert_eq!(heard, told.map(|(on, text)| (on.to_owned(), text)));
    seen.assert_every_key_expires();
    // The owner that was broken isn't let in from the line either, and its release hands on to nobody twice.
    assert_eq!(bench.release_answer("x", &a, None, None), 3);
    assert_eq!(bench.seen().contents(), seen.contents());
    assert!(bench.release(&b, Some(token)));
    assert_eq!(bench.seen().holder, Some(owner(3)));
    assert!(
        bench.seen().broken.contains_key(&id(1)),
        "it is still named"
    );
}

#[test]
fn owner_that_was_broken_is_not_let_in_from_the_line() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let (a, b) = (owner(1), owner(2));
    bench.token(&a);
    bench.wait(&b, "");
    // A late copy of its request has put it there.
    let queue = bench.queue.clone();
    bench.query::<()>(&["LPUSH", &queue, &a]);
    let waiter: String = bench.query(&["HGET", &bench.waiters.clone(), &b]);
    bench.query::<()>(&["HSET", &bench.waiters.clone(), &a, &waiter]);
    break_lock(&mut bench);
    let seen = bench.seen();
    assert_eq!(seen.holder, Some(b));
    assert_eq!(seen.line(), [""; 0]);
}

#[test]
fn all_that_share_are_broken_at_once() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for (mode, many) in [("r", 1), ("2/9", 2)] {
        let mut ears = Ears::on(&mut connection, &[BROKEN]);
        let mut bench = Bench::new(&server);
        let owners = [1, 2, 3].map(owner);
        let tokens = owners
            .each_ref()
            .map(|one| bench.granted(Ask::once(one).with_mode(mode)));
        let mut broken = break_lock(&mut bench);
        broken.sort();
        let shown = broken
            .iter()
            .map(|(public, permits, _, token)| (&**public, *permits, *token));
        let expected = [1, 2, 3].map(|at| (format!("host/12/{at}"), many, tokens[at - 1]));
        assert!(
            shown.eq(expected
                .iter()
                .map(|(public, permits, token)| (&**public, *permits, *token)))
        );
        let seen = bench.seen();
        assert_eq!((seen.holder.as_deref(), seen.shares().len()), (None, 0));
        let counter = seen.counter.unwrap();
        assert!(
            counter > tokens[2] && counter.is_multiple_of(8),
            "nothing was abandoned: {counter}"
        );
        assert_eq!(seen.broken.len(), 3);
        assert_eq!(ears.heard(&mut bench).len(), 3);
        for one in &owners {
            assert_stays_lost(&mut bench, Ask::waiting(one, TTL, INBOX).with_mode(mode));
            assert_eq!(renewal(&mut bench, mode, one), Value::Int(2));
            assert_eq!(bench.release_answer(mode, one, Some(tokens[0]), None), 3);
        }
        let next = bench.granted(Ask::once(&owner(4)).with_mode(mode));
        let seen = bench.seen();
        assert_eq!(next, next_shared_token(counter, 0).max(next));
        assert_eq!(seen.out, (mode != "r").then_some(2));
        seen.assert_every_key_expires();
        drop(ears);
    }
}

#[test]
fn abandonment_that_nobody_was_told_stays_when_readers_are_broken() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token(&owner(1));
    bench.forget_holder();
    let token = bench.granted(Ask::once(&owner(2)).with_mode("r"));
    assert_eq!(token % 8, 7);
    break_lock(&mut bench);
    let counter = bench.seen().counter.unwrap();
    assert!(counter > token && counter % 8 == 7, "{counter}");
    assert_eq!(bench.token(&owner(3)) % 8, 3);
}

#[test]
fn readers_that_wait_go_in_when_a_writer_is_broken() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token(&owner(1));
    bench.wait(&owner(2), "");
    for number in [3, 4] {
        bench.wait_to("r", &owner(number), "");
    }
    break_lock(&mut bench);
    let seen = bench.seen();
    assert_eq!(seen.shares().len(), 2);
    assert_eq!(seen.counter.unwrap() % 8, 7, "the next writer is told");
    assert_eq!(seen.line(), [&owner(2)]);
}

#[test]
fn foreign_holder_is_broken_whether_it_has_a_ttl_or_not() {
    let server = RedisServer::start();
    for more in [&["PX", "60000"][..], &[]] {
        let mut bench = Bench::new(&server);
        let lock = bench.lock.clone();
        bench.query::<()>(&[&["SET", &lock, "a secret of another"][..], more].concat());
        bench.wait(&owner(1), "");
        bench.wait(&owner(2), "");
        let broken = break_lock(&mut bench);
        let (public, permits, remaining, token) = &broken[0];
        assert_eq!(
            (&**public, *permits, *token),
            ("", 1, 0),
            "its text may be secret"
        );
        assert_eq!(*remaining == -1, more.is_empty());
        let seen = bench.seen();
        assert_eq!(seen.holder, Some(owner(1)));
        assert_eq!(seen.counter.unwrap() % 8, 3, "it was abandoned");
        assert!(seen.broken.is_empty());
        seen.assert_every_key_expires();
    }
}

#[test]
fn lock_that_stays_taken_is_freed_without_a_trace() {
    let server = RedisServer::start();
    for mode in ["x", "r", "1/3"] {
        let mut bench = Bench::new(&server);
        let a = owner(1);
        let token = bench.granted(Ask::once(&a).with_mode(mode));
        let counter = (token + 1).to_string();
        bench
            .run(Verb::Release, false, &[&a, &counter, mode, "", "60000"])
            .unwrap();
        bench.refused(Ask::once(&owner(2)));
        assert_eq!(break_lock(&mut bench), [], "nobody had it");
        assert!(bench.seen().broken.is_empty());
        assert_eq!(bench.token(&owner(2)) % 4, 1, "{mode}");
    }
}

#[test]
fn break_of_a_free_lock_lets_in_whoever_waits() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    assert_eq!(break_lock(&mut bench), []);
    assert_eq!(bench.seen().counter, None, "nothing was written");
    let token = bench.token(&owner(1));
    bench.wait(&owner(2), "");
    bench.expire();
    assert_eq!(break_lock(&mut bench), []);
    let seen = bench.seen();
    assert_eq!(seen.holder, Some(owner(2)));
    assert_eq!(
        seen.counter,
        Some(next_token(token, 0).max(seen.counter.unwrap()))
    );
}

#[test]
fn break_is_refused_where_there_is_something_else() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.set_counter("what");
    let error = bench.run(Verb::Break, false, &[BROKEN]).unwrap_err();
    assert_eq!(error.code(), Some("CONFLICT"));
    let mut bench = Bench::new(&server);
    let lock = bench.lock.clone();
    bench.query::<()>(&["RPUSH", &lock, "x"]);
    let error = bench.run(Verb::Break, false, &[BROKEN]).unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}

#[test]
fn lease_of_several_names_is_broken_by_one_of_them() {
    let server = RedisServer::start();
    let mut several = super::several_bench::Several::new(&server, 3);
    let a = owner(1);
    let token = several.token(&[0, 1, 2], &a);
    break_lock(&mut several.0[1]);
    assert_eq!(several.renewal(&[0, 1, 2], &a, TTL), Value::Int(2));
    // A late copy has none of them after it.
    several.refused(&[0, 1, 2], Ask::waiting(&a, TTL, INBOX));
    several.assert_has_none(&a);
    let again = several.release_answer(&[0, 1, 2], &a, Some(token));
    assert_eq!(again, 3);
    assert!(several.token(&[0, 1, 2], &owner(2)) > token);
    assert!(
        several.0[1].seen().broken.contains_key(&id(1)),
        "it is still named"
    );
}
