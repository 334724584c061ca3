//! Waiters that crash.

#[cfg(feature = "file")]
use std::fs;

use crosslock::LockGuard;

use super::*;
#[cfg(feature = "redis")]
use support::RedisServer;
use support::puppet::Puppet;
use support::wait_until;

#[cfg(feature = "redis")]
const DAY_MS: i64 = 24 * 3600 * 1000;

/// Kills a process that waits for "a", which `guard` holds, when it `waits`.
fn terminate_a_waiter(url: &str, guard: &LockGuard, waits: impl FnOnce()) {
    let mut waiter = Puppet::start(url, Duration::from_secs(30));
    waiter.tell("lock a");
    waits();
    waiter.terminate();
    assert!(!waiter.has_answered());
    guard.verify().unwrap();
}

#[cfg(feature = "redis")]
#[test]
fn terminated_waiter_leaves_nothing_on_redis() {
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.lock("a").unwrap();
    let clients = server.connected_clients();
    terminate_a_waiter(&server.url(), &guard, || {
        wait_until("it is in line", PATIENCE, || server.keys().len() == 4);
    });
    for key in ["{crosslock:a}:queue", "{crosslock:a}:waiters"] {
        assert!((1..=DAY_MS).contains(&server.pttl(key)), "{key}");
    }
    wait_until("its connections to be closed", PATIENCE, || {
        server.connected_clients() <= clients
    });
    guard.unlock().unwrap();
    assert_eq!(server.keys(), ["{crosslock:a}:fence"]);
    let next = lock.try_lock("a").unwrap().expect("nobody waits");
    assert!(!next.was_abandoned());
}

#[cfg(feature = "file")]
#[test]
fn terminated_waiter_leaves_nothing_on_file() {
    let dir = temp_dir();
    let lock = Locker::open(&file_url(&dir)).unwrap();
    let guard = lock.lock("a").unwrap();
    let files = || fs::read_dir(&dir).unwrap().count();
    let waiters = || lock.inspect("a").unwrap().waiters.len();
    let before = files();
    terminate_a_waiter(&file_url(&dir), &guard, || {
        wait_until("it to be in the queue", PATIENCE, || waiters() == 1);
    });
    assert_eq!(waiters(), 0);
    // Whoever finds that it is gone removes its door.
    assert_eq!(files(), before);
    guard.unlock().unwrap();
    let next = lock.try_lock("a").unwrap().expect("nobody waits");
    assert!(!next.was_abandoned());
}
