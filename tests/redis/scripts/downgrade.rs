//! Writers that go on as readers.

use super::ask::Ask;
use super::bench::Bench;
use super::seen::{Ears, is_full};
use super::shared::{INBOX, READERS, read};
use super::{FULL, TTL};
use support::RedisServer;

#[test]
fn downgrade_lets_the_owner_read_and_no_other_write() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let last_used = bench.token("a") + 2 * 7;
    let token = bench.downgrade("a", last_used, 2 * TTL, None).unwrap();
    assert!(
        token > last_used && token.is_multiple_of(4),
        "nothing was abandoned"
    );
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), READERS);
    assert_eq!(seen.shares(), ["1 a"]);
    assert!(is_full(seen.pttls[0], 2 * FULL), "{seen:?}");
    assert_eq!(seen.counter, Some(token));
    bench.refused(Ask::once("b"));
    bench.granted(read("b"));
    // Repeated for a reply that was lost.
    assert_eq!(bench.downgrade("a", last_used, TTL, None), Some(token));
    assert_eq!(bench.seen().shares(), ["1 a", "1 b"]);
    assert!(bench.release_as("r", "a", Some(token), None));
    assert!(!bench.release("a", Some(last_used)));
}

#[test]
fn nobody_else_downgrades() {
    let server = RedisServer::start();
    for mode in ["x", "r", "1/3"] {
        let mut bench = Bench::new(&server);
        let token = bench.granted(Ask::once("a").with_mode(mode));
        let before = bench.seen();
        assert_eq!(bench.downgrade("b", token, TTL, Some("new")), None);
        if mode == "1/3" {
            assert_eq!(bench.downgrade("a", token, TTL, Some("new")), None);
        }
        assert_eq!(bench.seen().contents(), before.contents());
    }
    let mut free = Bench::new(&server);
    assert_eq!(free.downgrade("a", 7, TTL, None), None);
    let keys = free.keys();
    assert!(keys.iter().all(|key| !server.keys().contains(key)));
}

#[test]
fn downgrade_lets_in_those_that_wait_to_read() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    for (waiting, goes_before) in [("x", false), ("w", true)] {
        let mut bench = Bench::new(&server);
        let last_used = bench.token("a");
        bench.wait_to("r", "b", INBOX);
        bench.wait_to(waiting, "c", INBOX);
        let token = bench.downgrade("a", last_used, TTL, None).unwrap();
        let seen = bench.seen();
        if goes_before {
            assert_eq!(seen.shares(), ["1 a"]);
            assert_eq!(ears.heard(&mut bench), []);
        } else {
            assert_eq!(seen.shares(), ["1 a", "1 b"]);
            let message = format!("b {}", token + 4);
            assert_eq!(ears.heard(&mut bench), [(INBOX.into(), message)]);
        }
        assert_eq!(seen.line, ["c"]);
    }
}
