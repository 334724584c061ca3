//! Servers come back with older data. They refuse clients that have seen later transactions, as long as they haven't
//! come so far themselves.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker, LockerBuilder};
use support::{ZooKeeper, wait_until};

use crate::{PATIENCE, builder, line, setup};

/// Longer than a server takes to start, and short enough to wait for its end.
const BRIEF: Duration = Duration::from_secs(8);

/// A busy machine may take longer than ten seconds to restart a server and to have it accept its clients.
fn patient(server: &ZooKeeper) -> LockerBuilder {
    builder(server).outage_timeout(3 * PATIENCE)
}

fn brief(server: &ZooKeeper) -> Locker {
    patient(server).ttl(BRIEF).build().unwrap()
}

/// Longer than a test waits for it.
fn wait_long(locker: &Locker) -> LockGuard {
    locker.try_lock_for("a", 3 * PATIENCE).unwrap().unwrap()
}

#[track_caller]
fn assert_is_lost(guard: &LockGuard) {
    guard.lost().recv_timeout(PATIENCE).expect("it is told");
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
}

/// The number of the last transaction.
fn last_transaction(server: &ZooKeeper) -> u64 {
    let told = server.word("srvr").expect("it answers");
    let number = told.lines().find_map(|line| line.strip_prefix("Zxid: 0x"));
    u64::from_str_radix(number.expect("it tells"), 16).expect("it is a number")
}

/// Has the server come further than its clients have seen it when that was its last transaction, or soon after.
fn go_on_past(server: &ZooKeeper, seen: u64) {
    const SOON: u64 = 100;
    let mut session = server.session();
    while last_transaction(server) <= seen + SOON {
        for _ in 0..SOON {
            session.create("/else-", "", 2).unwrap();
        }
    }
    session.close();
}

#[test]
fn locker_that_is_refused_goes_on_in_another_session() {
    let server = setup().start();
    let locker = brief(&server);
    drop(locker.lock("a").unwrap());
    let backup = server.back_up();
    let guard = locker.lock("a").unwrap();
    server.roll_back(&backup);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_long(&locker));
        assert_is_lost(&guard);
        wait_until("the lock", PATIENCE, || waits.is_finished());
        let next = waits.join().unwrap();
        next.unlock().unwrap();
    });
    assert!(line(&server, "a").is_empty());
}

#[test]
fn lock_that_the_data_has_is_back_until_its_session_ends() {
    let server = setup().start();
    let locker = brief(&server);
    let guard = locker.lock("a").unwrap();
    let backup = server.back_up();
    // The server was down for that: the answer to the release may be lost with the connection.
    drop(guard);
    wait_until("its release", PATIENCE, || line(&server, "a").is_empty());
    drop(locker);
    server.roll_back(&backup);
    let other = patient(&server).build().unwrap();
    assert!(other.try_lock("a").unwrap().is_none());
    let waited = other.try_lock_for("a", PATIENCE).unwrap();
    assert!(waited.expect("the session has ended").was_abandoned());
}

#[test]
fn session_that_goes_on_has_what_the_data_has() {
    let server = setup().start();
    // The servers' longest sessions, so that none ends before it can go on.
    let [one, other] = [(); 2].map(|()| patient(&server).ttl(3 * PATIENCE).build().unwrap());
    let kept = one.lock("kept").unwrap();
    drop(other.lock("a").unwrap());
    let backup = server.back_up();
    let guard = one.lock("a").unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_long(&other));
        wait_until("its place", PATIENCE, || line(&server, "a").len() == 2);
        // To look for its place takes transactions, too: on a busy machine hundreds.
        let seen = last_transaction(&server);
        server.roll_back(&backup);
        go_on_past(&server, seen);
        wait_until("the lock", PATIENCE, || waits.is_finished());
        let next = waits.join().unwrap();
        assert_is_lost(&guard);
        wait_until("its session to go on", PATIENCE, || kept.verify().is_ok());
        next.unlock().unwrap();
        kept.unlock().unwrap();
    });
    assert!(line(&server, "a").is_empty());
}
