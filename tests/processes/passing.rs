//! Leases that one process passes on to another, and lockers that a process closes before it exits.

use super::*;
use support::{Child, RedisServer};

#[test]
fn process_that_closes_may_exit_at_once() {
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let (url, day) = (server.url(), (24 * 3600 * 1000).to_string());
    for _ in 0..5 {
        let mut closes = Child::spawn("closes and exits", &[(URL, &url), (TTL, &day)]);
        closes.wait_for("works", PATIENCE);
        closes.tell("close");
        assert!(closes.wait(PATIENCE).success());
        let left = server.keys();
        let counters = left.iter().filter(|key| key.ends_with(":fence")).count();
        assert_eq!(counters, left.len(), "{left:?}");
        let names = (0..20).map(|n| format!("kept-{n}"));
        for name in names.chain((0..3).map(|n| format!("loop-{n}"))) {
            let guard = lock.try_lock(&name).unwrap().expect("it was released");
            assert!(!guard.was_abandoned());
        }
    }
}
