//! Leases that one process passes on to another, and lockers that a process closes before it exits.

use std::thread;
use std::time::Duration;

use super::holders::holder;
use super::*;
use support::puppet::Puppet;
use support::{Child, RedisServer};

/// Long enough for a child to begin within half of it, on a busy machine too.
const LEASE: Duration = Duration::from_secs(10);

/// A process that holds "a" and passes it on, the token, and the order to adopt it.
fn passed_on(url: &str, ttl: Duration) -> (Puppet, u64, String) {
    let (mut holder, token) = holder(url, ttl);
    let secret = holder.ask("give a");
    (holder, token, format!("adopt {secret}"))
}

#[test]
fn lease_outlives_the_process_that_passed_it_on() {
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let mut heir = Puppet::start(&server.url(), LEASE);
    let (mut holder, token, adopt) = passed_on(&server.url(), LEASE);
    holder.exit();
    heir.tell(&adopt);
    assert!(heir.holding().token > token);
    assert!(lock.try_lock("a").unwrap().is_none());
    assert!(heir.verifies());
    heir.unlock();
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

#[test]
fn lease_goes_on_while_its_first_process_waits_and_after_it_is_killed() {
    const SHORT: Duration = Duration::from_millis(1_500);
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let mut heir = Puppet::start(&server.url(), SHORT);
    let (mut holder, _, adopt) = passed_on(&server.url(), LEASE);
    heir.tell(&adopt);
    heir.holding();
    assert!(holder.ask(&adopt).starts_with("Lost"));
    // The heir renews, and the first process ends nothing.
    thread::sleep(SHORT);
    holder.kill();
    thread::sleep(SHORT);
    assert!(heir.verifies());
    assert!(lock.try_lock("a").unwrap().is_none());
    heir.kill();
    let next = lock.try_lock_for("a", PATIENCE).unwrap();
    assert!(next.expect("its ttl is over").was_abandoned());
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
