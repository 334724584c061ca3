//! What locks cost in a process, and that nothing of it stays behind.
//!
//! Whatever is counted in a process is counted in one of its own.

#![cfg(target_os = "linux")]

use std::env;
use std::thread;

use super::*;
use support::{Child, Etcd, Stopwatch, hear, is_child, say, sockets, threads_named};

/// All threads of the crate have names that begin with this.
const OURS: &str = "crosslock-";
const URL: &str = "TEST_URL";
const LOCKS: usize = 100;

fn take_many(locker: &Locker) -> Vec<LockGuard> {
    let names = (0..LOCKS).map(|n| n.to_string());
    names.map(|name| locker.lock(&name).unwrap()).collect()
}

#[track_caller]
fn assert_clean(sockets_before: usize) {
    let watch = Stopwatch::start();
    wait_until("the threads to end", PATIENCE, || threads_named(OURS) == 0);
    watch.assert_within(millis(100));
    assert_eq!(sockets(), sockets_before);
}

/// Holds many locks, waits for others, and drops everything when it is told to.
#[test]
fn child_holds_many_locks() {
    if !is_child("etcd_resources::child_holds_many_locks") {
        return;
    }
    let sockets_before = sockets();
    let locker = Locker::builder(&env::var(URL).unwrap()).renew_every(millis(1_000));
    let locker = locker.build().unwrap();
    let guards = take_many(&locker);
    let waiters: Vec<_> = (0..20)
        .map(|n| {
            let other = Locker::open(&env::var(URL).unwrap()).unwrap();
            thread::spawn(move || other.try_lock_for(&n.to_string(), millis(500)))
        })
        .collect();
    for waiter in waiters {
        // A server that has much to do may not answer in time.
        let outcome = waiter.join().unwrap();
        assert!(matches!(outcome, Ok(None) | Err(Error::Unavailable { .. })));
    }
    (0..3).for_each(|_| wait_for_renewal(&guards[0]));
    assert!(guards.iter().all(LockGuard::is_held));
    say("renewed");
    assert_eq!(hear().as_deref(), Some("drop"));
    drop((guards, locker));
    assert_clean(sockets_before);
    say("clean");
    // The parent looks at the server while this process lives.
    hear();
}

#[test]
fn many_locks_are_renewed_and_leave_nothing_behind() {
    let server = Etcd::start();
    let url = server.url();
    let test = "etcd_resources::child_holds_many_locks";
    let mut child = Child::spawn(test, &[(URL, url.as_str())]);
    child.wait_for("renewed", PATIENCE);
    wait_until("those who wait to leave the line", PATIENCE, || {
        let keys = server.keys("").into_iter();
        keys.filter(|key| key.contains("/w/")).count() == LOCKS
    });
    child.tell("drop");
    child.wait_for("clean", PATIENCE);
    wait_until("the keys to go", PATIENCE, || server.keys("").is_empty());
    child.hang_up();
    assert!(child.wait(PATIENCE).success());
}

/// Closes its locker while the server hangs.
#[test]
fn child_closes_without_an_answer() {
    if !is_child("etcd_resources::child_closes_without_an_answer") {
        return;
    }
    let sockets_before = sockets();
    let locker = open(&env::var(URL).unwrap());
    let guards = take_many(&locker);
    let waiting = locker.clone();
    let waiter = thread::spawn(move || waiting.lock("0").map(drop));
    say("holds");
    assert_eq!(hear().as_deref(), Some("close"));
    let watch = Stopwatch::start();
    locker.close();
    watch.assert_within(millis(500));
    assert!(waiter.join().unwrap().is_err());
    assert!(guards.iter().all(|guard| guard.lost().try_recv().is_ok()));
    drop((guards, locker));
    assert_clean(sockets_before);
}

#[test]
fn locker_closes_in_time_where_the_server_hangs() {
    let server = Etcd::start();
    let url = server.url();
    let test = "etcd_resources::child_closes_without_an_answer";
    let mut child = Child::spawn(test, &[(URL, url.as_str())]);
    child.wait_for("holds", PATIENCE);
    server.stop();
    child.tell("close");
    assert!(child.wait(PATIENCE).success());
}
