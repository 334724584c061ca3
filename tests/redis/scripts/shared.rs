//! Locks that are shared: by readers, or by permits.

use super::ask::Ask;
use super::bench::Bench;
use super::seen::{is_full, next_shared_token};
use super::{COUNTER_TTL, FULL, PATIENCE, TTL};
use support::scripts::Acquired;
use support::{RedisServer, wait_until};

pub(crate) const INBOX: &str = "an inbox";
pub(crate) const READERS: Option<&str> = Some("crosslock:readers");
pub(crate) const PERMITS: Option<&str> = Some("crosslock:permits");

pub(crate) fn read(owner: &str) -> Ask<'_> {
    Ask::once(owner).with_mode("r")
}

#[test]
fn readers_share_the_lock_each_with_a_later_token() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut last = 0;
    for owner in ["a", "b", "c"] {
        let before = bench.micros();
        let token = bench.granted(read(owner));
        let after = bench.micros();
        let expected = next_shared_token(last, before)..=next_shared_token(last, after);
        assert!(expected.contains(&token), "{token}");
        assert_eq!(token % 4, 0);
        last = token;
    }
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), READERS);
    assert_eq!(seen.shares(), ["1 a", "1 b", "1 c"]);
    assert_eq!(seen.counter, Some(last));
    let [lock, fence, .., holders, _] = seen.pttls;
    assert!(is_full(lock, FULL) && is_full(holders, FULL), "{seen:?}");
    assert!(is_full(fence, COUNTER_TTL), "{seen:?}");
    for (owner, left) in [("b", &["1 a", "1 c"][..]), ("a", &["1 c"]), ("c", &[])] {
        assert!(bench.release_as("r", owner, Some(last), None));
        assert_eq!(bench.seen().shares(), left);
    }
    assert_eq!(server.keys(), [bench.fence.as_str()]);
    assert_eq!(bench.token("d") % 4, 1, "readers leave nothing behind");
}

#[test]
fn readers_and_permits_and_exclusive_holders_exclude_one_another() {
    let server = RedisServer::start();
    let modes = ["x", "w", "r", "1/3"];
    for holder in modes {
        for other in modes {
            let mut bench = Bench::new(&server);
            bench.granted(Ask::once("a").with_mode(holder));
            let fits = holder == other && !["x", "w"].contains(&other);
            let answer = bench.ask(Ask::once("b").with_mode(other));
            assert_eq!(answer.token().is_some(), fits, "{other} beside {holder}");
            let eager = bench.ask(Ask::once("c").with_mode("R"));
            assert_eq!(eager.token().is_some(), holder == "r", "R beside {holder}");
            bench.seen().assert_every_key_expires();
        }
    }
}

#[test]
fn foreign_lock_is_shared_with_nobody() {
    let server = RedisServer::start();
    for mode in ["r", "R", "1/3"] {
        let mut bench = Bench::new(&server);
        let lock = bench.lock.clone();
        bench.query::<()>(&["SET", &lock, "foreign", "PX", "60000"]);
        match bench.ask(Ask::once("a").with_mode(mode)) {
            Acquired::Taken {
                remaining,
                known: false,
                ..
            } => assert!(is_full(remaining, FULL)),
            other => panic!("{other:?}"),
        }
        assert!(!bench.release_as(mode, "a", Some(7), None));
        assert!(!bench.renew_as(mode, "a", 5_000, None));
        assert_eq!(bench.contents(), (Some("foreign".into()), None));
        assert!(is_full(bench.seen().pttls[0], FULL));
    }
}

#[test]
fn permits_are_counted_and_given_up_to_the_total_that_is_asked_for() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    assert_eq!(bench.permits(), 0);
    bench.granted(Ask::once("a").with_mode("2/5"));
    bench.granted(Ask::once("b").with_mode("3/5"));
    assert_eq!(bench.permits(), 5);
    bench.refused(Ask::once("c").with_mode("1/5"));
    bench.granted(Ask::once("d").with_mode("1/6"));
    bench.refused(Ask::once("e").with_mode("1/6"));
    assert_eq!(bench.permits(), 6);
    assert!(bench.release_as("3/5", "b", None, None));
    assert_eq!(bench.permits(), 3);
    bench.refused(Ask::once("c").with_mode("3/5"));
    bench.granted(Ask::once("c").with_mode("2/5"));
    assert_eq!(bench.permits(), 5);
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), PERMITS);
    assert_eq!(seen.shares(), ["1 d", "2 a", "2 c"]);
}

#[test]
fn holder_that_is_a_program_of_ours_is_known_however_it_holds_the_lock() {
    let server = RedisServer::start();
    for mode in ["x", "w", "r", "1/1"] {
        let mut bench = Bench::new(&server);
        bench.granted(Ask::once("a").with_mode(mode));
        let answer = bench.ask(Ask::once("b"));
        assert!(matches!(answer, Acquired::Taken { known: true, .. }));
    }
}

#[test]
fn permits_of_a_lock_that_is_held_otherwise_are_none() {
    let server = RedisServer::start();
    for mode in ["x", "r"] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once("a").with_mode(mode));
        assert_eq!(bench.permits(), -1);
        assert!(bench.release_as(mode, "a", Some(token), None));
        assert_eq!(bench.permits(), 0);
    }
}

#[test]
fn who_waits_for_permits_is_told_when_the_next_may_come_back() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.granted(Ask::once("a").with_mode("1/2").with_ttl(5 * TTL));
    bench.granted(Ask::once("b").with_mode("1/2"));
    let remaining = |answer| match answer {
        Acquired::Taken { remaining, .. } => remaining,
        other => panic!("{other:?}"),
    };
    let permits = remaining(bench.ask(Ask::once("c").with_mode("1/2")));
    assert!(is_full(permits, FULL), "{permits}");
    // Who wants it alone waits at least as long, and asks again then.
    let exclusive = remaining(bench.ask(Ask::once("c")));
    assert!(is_full(exclusive, FULL), "{exclusive}");
}

// Leases of their own

#[test]
fn lock_lasts_as_long_as_the_last_lease_that_is_in() {
    let server = RedisServer::start();
    for mode in ["r", "1/9"] {
        let mut bench = Bench::new(&server);
        let ttls = [3, 9, 5];
        for (owner, ttl) in ["a", "b", "c"].into_iter().zip(ttls) {
            bench.granted(Ask::once(owner).with_mode(mode).with_ttl(ttl * TTL));
        }
        let seen = bench.seen();
        for (member, ttl) in ["1 a", "1 b", "1 c"].into_iter().zip([3, 9, 5]) {
            assert!(is_full(seen.lasts(member), ttl * FULL), "{seen:?}");
        }
        let lasts = |bench: &mut Bench, full: i64| {
            let [lock, .., holders, _] = bench.seen().pttls;
            assert!(is_full(lock, full) && is_full(holders, full), "{lock}");
        };
        lasts(&mut bench, 9 * FULL);
        assert!(bench.release_as(mode, "b", None, None));
        lasts(&mut bench, 5 * FULL);
        assert!(bench.renew_as(mode, "a", 7 * TTL, None));
        lasts(&mut bench, 7 * FULL);
        assert!(bench.renew_as(mode, "a", TTL, None));
        lasts(&mut bench, 5 * FULL);
    }
}

#[test]
fn lease_that_is_over_is_no_more_though_others_go_on() {
    let server = RedisServer::start();
    for (mode, left) in [("r", "1 b"), ("2/3", "2 b")] {
        let mut bench = Bench::new(&server);
        bench.granted(Ask::once("a").with_mode(mode).with_ttl(100));
        if mode == "r" {
            bench.granted(Ask::once("b").with_mode(mode));
        } else {
            bench.wait_to(mode, "b", "");
        }
        wait_until("the first lease to end", PATIENCE, || {
            bench.ask(Ask::waiting("b", TTL, "").with_mode(mode));
            bench.seen().shares() == [left]
        });
        assert!(!bench.renew_as(mode, "a", TTL, None));
        assert!(!bench.release_as(mode, "a", Some(1), None));
        let seen = bench.seen();
        assert_eq!(seen.shares(), [left]);
        assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
    }
}

#[test]
fn lock_is_free_when_all_leases_are_over() {
    let server = RedisServer::start();
    for mode in ["r", "1/3"] {
        let mut bench = Bench::new(&server);
        for owner in ["a", "b"] {
            bench.granted(Ask::once(owner).with_mode(mode).with_ttl(100));
        }
        wait_until("the leases to end", PATIENCE, || {
            bench.ask(Ask::once("c")).token().is_some()
        });
        assert!(!bench.renew_as(mode, "a", TTL, None));
        assert_eq!(bench.contents().0.as_deref(), Some("c"));
        // What is left of the others says nothing of those that come next.
        assert!(bench.release("c", None));
        bench.granted(Ask::once("d").with_mode(mode));
        assert_eq!(bench.seen().shares(), ["1 d"]);
    }
}

#[test]
fn repeated_acquire_of_one_who_shares_gives_a_full_ttl_and_counts_once() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let first = bench.granted(Ask::once("a").with_mode("2/3").with_ttl(30_000));
    let again = bench.granted(Ask::once("a").with_mode("2/3"));
    assert_eq!(again, first);
    assert_eq!(bench.permits(), 2);
    let seen = bench.seen();
    assert_eq!(seen.shares(), ["2 a"]);
    assert!(is_full(seen.lasts("2 a"), FULL), "{seen:?}");
    assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
}

#[test]
fn nobody_else_renews_or_releases_a_share() {
    let server = RedisServer::start();
    for mode in ["r", "1/3"] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once("a").with_mode(mode));
        let before = bench.seen();
        for other in ["r", "1/3", "2/3", "x"] {
            assert!(!bench.renew_as(other, "b", 9 * TTL, None));
            assert!(!bench.release_as(other, "b", Some(token), None));
            assert!(!bench.release_as(other, "b", None, None));
        }
        let after = bench.seen();
        assert_eq!(after.contents(), before.contents());
        assert!(is_full(after.pttls[0], FULL));
    }
}

#[test]
fn release_of_a_share_is_not_taken_for_one_of_an_exclusive_holder() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.release("a", Some(token)));
    assert!(!bench.release_as("r", "a", Some(token), None));
    bench.granted(Ask::once("b").with_mode("1/3"));
    bench.wait("c", "");
    let counter = bench.seen().counter.unwrap();
    assert!(!bench.release_as("1/3", "a", Some(counter - 1), None));
}

#[test]
fn renewal_of_a_share_makes_the_counter_last() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.granted(read("a"));
    let fence = bench.fence.clone();
    bench.query::<()>(&["PEXPIRE", &fence, "5000"]);
    assert!(bench.renew_as("r", "a", TTL, None));
    assert!(is_full(bench.seen().pttls[1], COUNTER_TTL));
}

#[test]
fn release_of_a_share_by_one_that_gives_up_is_a_release() {
    let server = RedisServer::start();
    for mode in ["r", "1/3"] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once("a").with_mode(mode));
        assert!(bench.release_as(mode, "a", None, None));
        assert!(!bench.release_as(mode, "a", None, None));
        assert_eq!(bench.contents(), (None, Some(token)));
    }
}

// A lock that somebody deletes

/// An owner that shared the lock before it was deleted, and has an exclusive holder, or a foreign one, now.
fn deleted(server: &RedisServer, mode: &str, foreign: bool) -> Bench {
    let mut bench = Bench::new(server);
    bench.granted(Ask::once("a").with_mode(mode));
    bench.forget_holder();
    if foreign {
        let lock = bench.lock.clone();
        bench.query::<()>(&["SET", &lock, "other", "NX", "PX", "60000"]);
    } else {
        bench.token("other");
    }
    bench
}

fn each_deletion(server: &RedisServer, check: impl Fn(&str, &mut Bench)) {
    for mode in ["r", "2/3"] {
        for foreign in [false, true] {
            let mut bench = deleted(server, mode, foreign);
            check(mode, &mut bench);
            let seen = bench.seen();
            assert_eq!(seen.holder.as_deref(), Some("other"), "{mode} {foreign}");
            assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
        }
    }
}

#[test]
fn release_of_a_share_that_was_lost_frees_nobody_elses_lock() {
    let server = RedisServer::start();
    each_deletion(&server, |mode, bench| {
        assert!(!bench.release_as(mode, "a", Some(1), None));
        assert!(!bench.release_as(mode, "a", None, None));
    });
}

#[test]
fn renewal_of_a_share_that_was_lost_is_refused_and_leaves_the_holders_ttl() {
    let server = RedisServer::start();
    each_deletion(&server, |mode, bench| {
        assert!(!bench.renew_as(mode, "a", 5_000, None));
    });
}

#[test]
fn share_that_was_lost_is_not_granted_again_beside_another_holder() {
    let server = RedisServer::start();
    each_deletion(&server, |mode, bench| {
        bench.refused(Ask::once("a").with_mode(mode).with_ttl(5_000));
        bench.wait_to(mode, "a", "");
    });
}

#[test]
fn shares_from_before_a_deletion_are_forgotten() {
    let server = RedisServer::start();
    for (before, after) in [("r", "1/3"), ("1/3", "r"), ("r", "r"), ("3/3", "3/3")] {
        for waits in [false, true] {
            let mut bench = Bench::new(&server);
            bench.granted(Ask::once("a").with_mode(before).with_ttl(9 * TTL));
            if waits {
                bench.wait_to("x", "w", "closed");
            }
            bench.forget_holder();
            bench.granted(Ask::once("b").with_mode(after));
            let seen = bench.seen();
            let count = after.split('/').next().unwrap().replace('r', "1");
            assert_eq!(seen.shares(), [format!("{count} b")]);
            assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
            assert!(!bench.release_as(before, "a", Some(1), None));
        }
    }
}

// Without memory

#[test]
fn shares_are_renewed_and_released_without_memory() {
    let server = RedisServer::start();
    for mode in ["r", "1/9"] {
        let mut bench = Bench::new(&server);
        for owner in ["a", "b", "c"] {
            bench.granted(Ask::once(owner).with_mode(mode));
        }
        bench.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        assert!(bench.renew_as(mode, "a", 2 * TTL, None));
        for owner in ["a", "b", "c"] {
            assert!(bench.release_as(mode, owner, None, None));
        }
        let error = bench.try_ask(Ask::once("a").with_mode(mode)).unwrap_err();
        // Redis 6.2 says it inside of another error.
        assert!(error.to_string().contains("maxmemory"), "{error}");
        bench.query::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(bench.contents().0, None);
        assert!(bench.seen().shares.is_empty());
    }
}
