//! What is told of a lock that is broken, and what comes with one that is passed on.

use redis::{FromRedisValue, Value};

use super::ask::Ask;
use super::bench::Bench;
use super::seen::is_full;
use super::{FULL, TTL};
use support::RedisServer;
use support::scripts::Verb;

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

#[test]
fn holders_are_told_without_their_secrets() {
    let server = RedisServer::start();
    for (mode, many, permits) in [("x", 1, 1), ("r", 3, 1), ("2/9", 3, 2)] {
        let mut bench = Bench::new(&server);
        let tokens = [1, 2, 3].map(|number| {
            let owner = owner(number);
            let ask = Ask::once(&owner).with_mode(mode);
            bench.ask(ask).token()
        });
        let mut broken = break_lock(&mut bench);
        broken.sort();
        assert!(
            broken
                .iter()
                .all(|(_, _, remaining, _)| is_full(*remaining, FULL)),
            "{broken:?}"
        );
        let shown = broken
            .into_iter()
            .map(|(public, permits, _, token)| (public, permits, token));
        let expected = tokens.iter().flatten().enumerate();
        let expected = expected.map(|(at, token)| (format!("host/12/{}", at + 1), permits, *token));
        assert!(shown.eq(expected), "{mode}");
        let seen = bench.seen();
        assert_eq!((seen.holder.as_deref(), seen.broken.len()), (None, many));
        let named: Vec<_> = [1, 2, 3].map(id)[..many].to_vec();
        assert!(seen.broken.into_keys().eq(named));
        bench.seen().assert_every_key_expires();
    }
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
fn value_comes_with_a_lease_that_is_adopted() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token(&owner(1));
    let (ttl, counter) = (TTL.to_string(), (token + 1).to_string());
    let (value, arguments) = (
        bench.value.clone(),
        [owner(2), ttl, "x".into(), owner(1), counter],
    );
    let arguments = arguments.each_ref().map(String::as_str);
    bench.query::<()>(&["SET", &value, "stored"]);
    match bench.run(Verb::Adopt, true, &arguments) {
        Ok(Value::Array(parts)) => {
            assert!(matches!(&parts[0], Value::Int(number) if number.cast_unsigned() > token));
            assert_eq!(parts[1], Value::BulkString(b"stored".into()));
        }
        other => panic!("{other:?}"),
    }
}
