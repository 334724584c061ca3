//! Grants that reach a waiter late.

use super::watch::{FENCE, LOCK, assert_nothing_left, holder, line, wait_for_line};
use super::*;
use support::RedisServer;
use support::puppet::Puppet;

/// A process that is alone in line for "a", stopped, granted the lock and still stopped.
fn granted_while_stopped(server: &RedisServer, ttl: Duration) -> Puppet {
    let (_, guard) = holder(server);
    let mut process = Puppet::start(&server.url(), ttl);
    process.lock("a");
    wait_for_line(server, 1);
    process.stop();
    let owner = line(server).remove(0);
    guard.unlock().unwrap();
    assert_eq!(server.get(LOCK), Some(owner));
    process
}

#[test]
fn grant_that_has_run_out_is_not_believed() {
    let server = RedisServer::start();
    let mut process = granted_while_stopped(&server, millis(500));
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.try_lock_for("a", PATIENCE).unwrap();
    let guard = guard.expect("the lease ran out");
    assert!(guard.was_abandoned());

    process.cont();
    // It asks, and stands in line again.
    wait_for_line(&server, 1);
    guard.verify().unwrap();
    assert!(!process.has_said_that_it_holds());
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let holding = process.holding();
    assert!(holding.token > token && !holding.abandoned, "{holding:?}");
    assert!(process.verifies());
    process.unlock();
    assert_nothing_left(&server);
}

#[test]
fn grant_that_has_run_out_while_nobody_came_is_asked_for_anew() {
    let server = RedisServer::start();
    let mut process = granted_while_stopped(&server, millis(500));
    let granted = server.counter(FENCE).unwrap();
    wait_until("the lease to end", PATIENCE, || server.get(LOCK).is_none());
    process.cont();
    let holding = process.holding();
    assert!(holding.token > granted, "{holding:?} after {granted}");
    assert!(process.verifies());
    process.unlock();
    assert_nothing_left(&server);
}

#[test]
fn late_grant_that_is_still_good_is_used() {
    const LEASE: Duration = millis(2_000);
    let server = RedisServer::start();
    let mut process = granted_while_stopped(&server, LEASE);
    let granted = server.counter(FENCE).unwrap();
    // More than half of it is over.
    wait_until("the lease to age", PATIENCE, || server.pttl(LOCK) < 900);
    process.cont();
    let holding = process.holding();
    assert_eq!((holding.token, holding.abandoned), (granted, false));
    // It was renewed, and goes on being so.
    assert!(server.pttl(LOCK) > 900);
    thread::sleep(LEASE);
    assert!(process.verifies());
    process.unlock();
    assert_nothing_left(&server);
}
