//! Copies of a command that come late: a network that sent them again, or a server that stood still, may carry out an
//! acquire whose owner has released by then.

use super::TTL;
use super::ask::Ask;
use super::bench::Bench;
use super::seen::Ears;
use support::RedisServer;

const INBOX: &str = "an inbox";

#[test]
fn release_never_sets_the_counter_back_and_loses_no_abandonment() {
    let server = RedisServer::start();
    for waits in [false, true] {
        let mut bench = Bench::new(&server);
        let first = bench.token("a");
        assert!(bench.release("a", Some(first)), "whose answer is lost");
        let dead = bench.token("b");
        bench.forget_holder();
        let late = bench.token("a");
        assert!(late > dead && late % 4 == 3, "nobody is told that b died");
        if waits {
            bench.wait("c", "");
        }
        assert_eq!(sent_again(&mut bench, first), 2, "others were let in since");
        let seen = bench.seen();
        assert!(seen.counter.unwrap() >= late, "{seen:?} after {late}");
        let next = match waits {
            true => seen.counter.unwrap(),
            false => bench.token("c"),
        };
        assert!(next > late && next % 4 == 3, "c is told: {next}");
        assert_eq!(bench.seen().holder.as_deref(), Some("c"));
    }
}

#[test]
fn release_of_a_late_copy_that_found_nothing_abandoned_is_a_clean_one() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let first = bench.token("a");
    assert!(bench.release("a", Some(first)));
    let late = bench.token("a");
    assert_eq!(sent_again(&mut bench, first), 2);
    assert_eq!(bench.contents(), (None, Some(late + 1)));
    assert_eq!(bench.token("b") % 4, 1);
}

/// What a release answers that comes after its lease has ended, and finds that its owner has the lock anew.
fn sent_again(bench: &mut Bench, first: u64) -> i64 {
    bench.release_answer("x", "a", Some(first), None)
}

/// "a" has lost the lock, another has stored "later", and a late copy of what "a" has asked for is granted it anew: the
/// first token of "a", and that which it doesn't know.
fn tokens_around_another(bench: &mut Bench) -> [u64; 2] {
    let first = bench.token("a");
    bench.forget_holder();
    let other = bench.token("b");
    assert!(bench.release_as("x", "b", Some(other), Some("later")));
    [first, bench.token("a")]
}

#[test]
fn release_of_a_late_copy_stores_nothing_over_what_others_stored() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let [first, _] = tokens_around_another(&mut bench);
    let answer = bench.release_answer("x", "a", Some(first), Some("earlier"));
    assert_eq!(answer, 2, "its lease was lost");
    let seen = bench.seen();
    assert_eq!(seen.value.as_deref(), Some("later"));
    assert_eq!(seen.holder, None, "nobody has to wait for what nobody uses");
}

#[test]
fn renewal_of_a_late_copy_is_refused() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let [first, late] = tokens_around_another(&mut bench);
    for (ttl, value) in [(0, None), (TTL, None), (TTL, Some("earlier"))] {
        assert_eq!(bench.renew_granted(("a", first), ttl, value), 0);
        assert_eq!(bench.seen().value.as_deref(), Some("later"));
    }
    // Whoever knows the later token has the lock.
    for (ttl, value) in [(0, None), (TTL, None), (TTL, Some("latest"))] {
        assert_eq!(bench.renew_granted(("a", late), ttl, value), 1);
    }
    let seen = bench.seen();
    assert_eq!(seen.value.as_deref(), Some("latest"));
    assert_eq!(seen.counter, Some(late));
}

#[test]
fn renewal_needs_no_counter_and_no_late_one() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    bench.wait("b", "");
    assert_eq!(
        bench.renew_granted(("a", token), TTL, None),
        1,
        "with a letter"
    );
    let fence = bench.fence.clone();
    // A replica may have less.
    bench.set_counter(&(token - 8).to_string());
    assert_eq!(bench.renew_granted(("a", token), TTL, None), 1);
    bench.delete(&fence);
    assert_eq!(bench.renew_granted(("a", token), TTL, None), 1);
}

/// "a" has lost what it shared, another had the lock exclusively, and a late copy of what "a" has asked for lets it in anew:
/// the first token of "a", and that which it doesn't know.
fn shared_around_another(bench: &mut Bench, mode: &str) -> [u64; 2] {
    let first = bench.granted(Ask::once("a").with_mode(mode));
    bench.forget_holder();
    let other = bench.token("b");
    assert!(bench.release("b", Some(other)));
    [first, bench.granted(Ask::once("a").with_mode(mode))]
}

#[test]
fn renewal_of_what_a_late_copy_shares_is_refused() {
    let server = RedisServer::start();
    for mode in ["r", "1/1"] {
        let mut bench = Bench::new(&server);
        let [first, late] = shared_around_another(&mut bench, mode);
        for ttl in [0, TTL] {
            let answer = bench.renew_granted_as(mode, ("a", first), ttl, None);
            assert_eq!(answer, 0, "{mode}: another had it meanwhile");
            let answer = bench.renew_granted_as(mode, ("a", late), ttl, None);
            assert_eq!(answer, 1, "{mode}: by its own token");
        }
    }
}

#[test]
fn release_of_what_a_late_copy_shares_is_none() {
    let server = RedisServer::start();
    for (mode, waits) in [("r", false), ("1/1", false), ("r", true), ("1/1", true)] {
        let mut bench = Bench::new(&server);
        let [first, _] = shared_around_another(&mut bench, mode);
        if waits {
            bench.wait("c", "");
        }
        let answer = bench.release_answer(mode, "a", Some(first), None);
        assert_eq!(answer, 2, "{mode}: its lease was lost");
        let holder = bench.seen().holder;
        assert_eq!(
            holder.as_deref(),
            waits.then_some("c"),
            "nobody has to wait"
        );
    }
}

#[test]
fn late_copies_of_what_an_owner_shares_by_leave_it_its_token() {
    let server = RedisServer::start();
    for mode in ["r", "1/3"] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once("a").with_mode(mode));
        bench.granted(Ask::once("b").with_mode(mode));
        let counter = bench.seen().counter;
        assert_eq!(bench.granted(Ask::once("a").with_mode(mode)), token);
        assert_eq!(bench.seen().counter, counter);
        let answer = bench.renew_granted_as(mode, ("a", token), TTL, None);
        assert_eq!(answer, 1, "{mode}");
        assert!(bench.release_as(mode, "a", Some(token), None));
    }
    let mut bench = Bench::new(&server);
    let last_used = bench.token("a");
    let reads = bench.downgrade("a", last_used, TTL, None);
    assert_eq!(bench.downgrade("a", last_used, TTL, None), reads);
}

#[test]
fn downgrade_of_a_late_copy_is_none() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let [first, late] = tokens_around_another(&mut bench);
    assert_eq!(bench.downgrade("a", first, TTL, Some("earlier")), None);
    let seen = bench.seen();
    assert_eq!(seen.value.as_deref(), Some("later"));
    assert_eq!(seen.counter, Some(late), "it never goes back");
}

#[test]
fn release_takes_its_owner_out_of_the_line_that_a_late_copy_entered() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    // Before the other, and behind it.
    for late_first in [true, false] {
        let mut bench = Bench::new(&server);
        let token = bench.token("a");
        if late_first {
            enter_late(&mut bench, "a");
        }
        bench.wait("b", INBOX);
        if !late_first {
            enter_late(&mut bench, "a");
        }
        assert!(bench.release("a", Some(token)));
        let seen = bench.seen();
        assert_eq!(seen.holder.as_deref(), Some("b"));
        assert_eq!(seen.line(), [""; 0]);
        let heard = ears.heard(&mut bench);
        let told = format!("b {}", seen.counter.unwrap());
        assert_eq!(heard, [(INBOX.to_owned(), told)]);
    }
}

/// Puts the holder into the line, as a copy does that comes between two leases of the same owner.
fn enter_late(bench: &mut Bench, owner: &str) {
    let (lock, holder) = (bench.lock.clone(), bench.seen().holder.unwrap());
    bench.query::<()>(&["SET", &lock, "another", "KEEPTTL"]);
    bench.refused(Ask::waiting(owner, TTL, INBOX));
    bench.query::<()>(&["SET", &lock, &holder, "KEEPTTL"]);
}

#[test]
fn refused_release_takes_its_owner_out_of_the_line() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.release("a", Some(token)));
    bench.token("b");
    bench.wait("a", INBOX);
    bench.wait("c", INBOX);
    assert!(!bench.release("a", Some(token)), "sent again");
    assert_eq!(bench.seen().line(), ["c"]);
}
