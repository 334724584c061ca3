//! Leases that pass from one owner to another.

use redis::Value;

use super::ask::Ask;
use super::bench::Bench;
use super::breaks::{break_lock, owner};
use super::seen::is_full;
use super::{FULL, HAND_OVERS, TTL};
use support::RedisServer;
use support::scripts::Verb;

/// The token by which an owner has the lease of another; `None` when that hasn't it.
fn adopt(bench: &mut Bench, mode: &str, owner: &str, from: &str, last_used: u64) -> Option<u64> {
    let (ttl, counter) = (TTL.to_string(), (last_used + 1).to_string());
    match bench.run(Verb::Adopt, false, &[owner, &ttl, mode, from, &counter]) {
        Ok(Value::Int(token)) => Some(token.try_into().unwrap()).filter(|token| *token > 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lease_passes_to_the_new_owner_with_a_full_ttl_and_a_token_above_all_that_were_used() {
    let server = RedisServer::start();
    for mode in ["x", "w", "r", "2/3"] {
        let mut bench = Bench::new(&server);
        let (a, b) = (owner(1), owner(2));
        let first = bench.granted(Ask::once(&a).with_mode(mode).with_ttl(5_000));
        let last_used = if mode == "x" {
            first + 2 * HAND_OVERS
        } else {
            first
        };
        let token = adopt(&mut bench, mode, &b, &a, last_used).expect("it has it");
        assert!(
            token > last_used && token % 8 != 3,
            "nothing was abandoned: {token}"
        );
        let seen = bench.seen();
        assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
        assert_eq!(seen.out, (mode == "2/3").then_some(2));
        seen.assert_every_key_expires();
        assert!(
            !bench.renew_as(mode, &a, TTL, None),
            "it isn't its own any more"
        );
        assert!(!bench.release_as(mode, &a, Some(last_used), None));
        assert!(bench.renew_as(mode, &b, TTL, None));
        let again = adopt(&mut bench, mode, &b, &a, last_used).expect("it has it already");
        assert!(again >= token);
        assert_eq!(bench.seen().out, seen.out, "it is counted once");
        assert_eq!(adopt(&mut bench, mode, &owner(3), &a, last_used), None);
        assert!(bench.release_as(mode, &b, Some(again), None));
        let seen = bench.seen();
        assert_eq!(seen.holder, None);
        assert_eq!(
            adopt(&mut bench, mode, &b, &a, last_used),
            None,
            "it is over"
        );
        assert_eq!(bench.seen().contents(), seen.contents());
        assert_eq!(bench.token(&owner(3)) % 4, 1);
    }
}

#[test]
fn lease_that_is_over_or_was_broken_is_not_adopted() {
    let server = RedisServer::start();
    for mode in ["x", "r", "2/3"] {
        let mut bench = Bench::new(&server);
        let (a, b) = (owner(1), owner(2));
        let token = bench.granted(Ask::once(&a).with_mode(mode));
        break_lock(&mut bench);
        let seen = bench.seen();
        assert_eq!(adopt(&mut bench, mode, &b, &a, token), None);
        assert_eq!(bench.seen().contents(), seen.contents());
        bench.granted(Ask::once(&owner(3)).with_mode(mode).with_ttl(20));
        bench.expire();
        assert_eq!(
            adopt(&mut bench, mode, &b, &owner(3), u64::from(u32::MAX)),
            None
        );
        bench.token(&owner(4));
        assert_eq!(
            adopt(&mut bench, mode, &b, &owner(3), u64::from(u32::MAX)),
            None
        );
    }
}

#[test]
fn lease_that_a_late_copy_took_anew_is_not_adopted() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let (a, b) = (owner(1), owner(2));
    let first = bench.token(&a);
    bench.forget_holder();
    let other = bench.token(&owner(3));
    assert!(bench.release(&owner(3), Some(other)));
    bench.token(&a);
    assert_eq!(
        adopt(&mut bench, "x", &b, &a, first),
        None,
        "others had it since"
    );
}

#[test]
fn those_that_wait_go_on_waiting_and_the_first_owner_waits_no_more() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let (a, b) = (owner(1), owner(2));
    let token = bench.token(&a);
    bench.wait(&owner(3), "");
    let waiters = bench.waiters.clone();
    let waiter: String = bench.query(&["HGET", &waiters, &owner(3)]);
    bench.query::<()>(&["HSET", &waiters, &a, &waiter]);
    let queue = bench.queue.clone();
    bench.query::<()>(&["RPUSH", &queue, &a]);
    let adopted = adopt(&mut bench, "x", &b, &a, token).expect("it has it");
    assert_eq!(bench.seen().line(), [&owner(3)]);
    assert!(bench.release(&b, Some(adopted)));
    assert_eq!(bench.seen().holder, Some(owner(3)));
}

#[test]
fn value_comes_with_the_lease() {
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

#[test]
fn several_names_pass_on_together_or_none_does() {
    let server = RedisServer::start();
    let mut several = super::several_bench::Several::new(&server, 3);
    let all = [0, 1, 2];
    let (a, b) = (owner(1), owner(2));
    let token = several.token(&all, &a);
    let last_used = token + 2 * HAND_OVERS;
    let adopted = several.adopt(&all, &b, &a, last_used).expect("it has them");
    assert!(adopted > last_used);
    assert!(
        several
            .counters()
            .iter()
            .all(|counter| *counter == Some(adopted))
    );
    assert!(several.renew(&all, &b, TTL) && !several.renew(&all, &a, TTL));
    assert!(several.adopt(&all, &b, &a, last_used).expect("again") >= adopted);
    several.0[1].forget_holder();
    let before = several.holders();
    assert_eq!(
        several.adopt(&all, &owner(3), &b, u64::from(u32::MAX)),
        None
    );
    assert_eq!(several.holders(), before);
}
