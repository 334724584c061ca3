//! Processes with connections: they close before they exit, and a child that is forked off has its own.

use super::places::Place;
use super::*;
use support::{Child, RedisServer, wait_until};

#[test]
fn forked_children_are_notified_as_their_parent_is() {
    // A waiter that isn't notified would ask too late.
    const LONG: Duration = Duration::from_secs(300);
    let server = RedisServer::start();
    let lock = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let guard = lock.lock("a").unwrap();
    let ttl = LONG.as_millis().to_string();
    let args = [(URL, &*server.url()), (TTL, &*ttl)];
    let mut child = Child::spawn("forks beside a waiter", &args);
    let await_waiters = |number| {
        wait_until("the waiters", PATIENCE, || {
            server.query::<usize>(&["LLEN", "{crosslock:a}:queue"]) == number
        });
    };
    await_waiters(1);
    child.tell("fork");
    await_waiters(3);
    guard.unlock().unwrap();
    assert!(child.wait(PATIENCE).success());
    assert_eq!(server.keys(), ["{crosslock:a}:fence"]);
}

/// While a child has its parent's connections, a server takes a parent that has died for one that lives.
#[cfg(target_os = "linux")]
#[test]
fn forked_child_closes_the_idle_connections_that_it_inherited() {
    // A renewal takes a connection beside that of a call: of the child's lock, or of the parent's at the moment of the
    // fork.
    let lease = Duration::from_secs(60);
    Place::redis().succeeds_with("forks with idle connections", lease);
}

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
