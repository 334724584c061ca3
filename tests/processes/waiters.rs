//! Waiters that crash.

use std::fs;

use crosslock::LockGuard;

use super::*;
use support::puppet::Puppet;
use support::wait_until;

/// Kills a process that waits for "a", which `guard` holds, when it `waits`.
fn terminate_a_waiter(url: &str, guard: &LockGuard, waits: impl FnOnce()) {
    let mut waiter = Puppet::start(url, Duration::from_secs(30));
    waiter.tell("lock a");
    waits();
    waiter.terminate();
    assert!(!waiter.has_answered());
    guard.verify().unwrap();
}

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
