//! Leases of several servers that become one: each gets the token of all.

use super::ask::owner;
use super::bench::Several;
use super::seen::is_full;
use super::{COUNTER_TTL, FULL};
use support::RedisServer;

const NAMES: [usize; 2] = [0, 1];

#[test]
fn counters_are_raised_and_leases_last_for_another_ttl() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    let token = several.token(&NAMES, "a") + 4_000;
    several.0[1].wait("b", "inbox");
    for again in 0..2 {
        assert_eq!(several.raise(&NAMES, "a", token), 1, "{again}");
        assert_eq!(several.counters(), [Some(token); 2]);
    }
    for seen in several.seen() {
        assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
        assert!(is_full(seen.pttls[1], COUNTER_TTL), "{seen:?}");
    }
    assert_eq!(
        several.0[1].seen().line(),
        ["b"],
        "who waits is not forgotten"
    );
    assert_eq!(several.release(&NAMES, "a", token), 1);
    assert!(several.token(&[0], "c") > token);
}

#[test]
fn nothing_is_raised_where_one_is_not_the_owners() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    let token = several.token(&NAMES, "a");
    several.0[1].expire();
    several.0[1].token("b");
    let before = several.counters();
    assert_eq!(several.raise(&NAMES, "a", token + 40_000), 0);
    assert_eq!(several.counters(), before);
    several.0[0].expire();
    assert_eq!(several.raise(&[0], "a", token + 40_000), 0);
}

#[test]
fn lease_that_was_lost_and_is_its_own_anew_is_not_raised_to_less() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 1);
    let token = several.token(&[0], "a");
    several.0[0].expire();
    several.0[0].token("b");
    several.0[0].expire();
    // By a late copy of its request.
    let anew = several.token(&[0], "a");
    assert!(anew > token);
    assert_eq!(several.raise(&[0], "a", token), 0);
    assert_eq!(several.counters(), [Some(anew)]);
    assert_eq!(several.raise(&[0], "a", anew), 1);
}

#[test]
fn owner_whose_lease_was_broken_is_told() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    let a = owner(1);
    let token = several.token(&NAMES, &a);
    several.0[1].break_lock().expect("break");
    assert_eq!(several.raise(&NAMES, &a, token + 4_000), 2);
    assert_eq!(several.counters()[0], Some(token));
}
