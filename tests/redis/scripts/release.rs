//! What `lock/release.lua` does where nobody waits.

use super::COUNTER_TTL;
use super::bench::Bench;
use super::counter::EXACT;
use super::seen::is_full;
use support::RedisServer;

#[test]
fn owner_releases_and_the_counter_is_even() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.release("a", Some(token)));
    assert_eq!(bench.contents(), (None, Some(token + 1)));
    assert!(is_full(bench.seen().pttls[1], COUNTER_TTL));
    // The same command again, for a reply that was lost.
    assert!(bench.release("a", Some(token)));
    assert_eq!(bench.contents(), (None, Some(token + 1)));
}

#[test]
fn tokens_that_were_used_in_the_process_are_written_back() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.set_counter(&(EXACT / 2).to_string());
    let last_used = bench.token("a") + 2 * 7;
    assert!(bench.release("a", Some(last_used)));
    assert_eq!(bench.seen().counter, Some(last_used + 1));
    assert!(bench.token("b") > last_used);
}

#[test]
fn nobody_else_releases() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for token in [None, Some(7)] {
        assert!(!bench.release("a", token));
        assert_eq!(server.keys(), [""; 0]);
    }
    let first = bench.token("a");
    bench.expire();
    bench.token("b");
    let before = bench.contents();
    for (owner, token) in [("a", Some(first)), ("a", None), ("", None)] {
        assert!(!bench.release(owner, token), "{owner:?} {token:?}");
        assert_eq!(bench.contents(), before);
    }
}

#[test]
fn release_after_the_next_holder_came_and_went_is_refused() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let first = bench.token("a");
    assert!(bench.release("a", Some(first)));
    let second = bench.token("b");
    assert!(bench.release("b", Some(second)));
    let before = bench.contents();
    assert_eq!(bench.release_answer("x", "a", Some(first), None), 2);
    assert_eq!(bench.contents(), before);
}

/// A server that has forgotten it, or gone back to before: nobody has carried out this release.
#[test]
fn release_that_the_counter_does_not_know_of_was_not_made() {
    let server = RedisServer::start();
    for forgets_counter in [false, true] {
        let mut bench = Bench::new(&server);
        let token = bench.token("a");
        let [lock, fence, ..] = bench.keys();
        bench.delete(&lock);
        if forgets_counter {
            bench.delete(&fence);
        }
        assert_eq!(bench.release_answer("x", "a", Some(token), None), 0);
    }
}

#[test]
fn repeated_release_is_known_also_while_others_wait() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.release("a", Some(token)));
    let lock = bench.lock.clone();
    bench.query::<()>(&["SET", &lock, "foreign", "PX", "60000"]);
    bench.wait("b", "");
    let before = bench.seen();
    assert!(bench.release("a", Some(token)));
    assert!(!bench.release("a", Some(token + 2)));
    assert_eq!(bench.seen().contents(), before.contents());
}

#[test]
fn release_of_an_unknown_token_is_a_clean_one() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    assert!(bench.release("a", None));
    assert_eq!(bench.contents(), (None, Some(token + 1)));
    assert!(!bench.release("a", None));
    assert_eq!(bench.token("b") % 4, 1);
}

#[test]
fn release_of_an_unknown_token_is_a_clean_one_also_without_a_counter() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    let fence = bench.fence.clone();
    bench.delete(&fence);
    assert!(bench.release("a", None));
    bench.seen().assert_every_key_expires();
    assert_eq!(bench.token("b") % 4, 1, "nothing was abandoned");
}

#[test]
fn owner_that_never_knew_of_its_grant_leaves_abandonment_to_be_told() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.expire();
    let untold = bench.token("b");
    assert_eq!(untold % 4, 3);
    assert!(bench.release("b", None));
    let told = bench.token("c");
    assert!(told > untold);
    assert_eq!(told % 4, 3, "what the first left behind was told to nobody");
}
