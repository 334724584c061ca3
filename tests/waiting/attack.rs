//! What an attack on waiting found.

use crosslock::Locker;

use super::watch::wait_for_line;
use super::*;
use support::RedisServer;

/// Who waits for a lock that is kept gets it when the time is over, not with its next heartbeat.
fn kept_lock_wakes_who_waits(
    url: &str,
    name: &str,
    take: fn(&Locker, &str) -> Result<LockGuard>,
    wait_for_waiter: impl FnOnce(&Pending<LockGuard>),
) {
    let locker = || Locker::builder(url).ttl(LONG).build().unwrap();
    let (holder, other) = (locker(), locker());
    let guard = take(&holder, name).unwrap();
    guard.at_least_for(millis(1500));
    let pending = waiting(&other, name);
    wait_for_waiter(&pending);
    thread::sleep(millis(300));
    guard.unlock().unwrap();
    let got = pending.outcome.recv_timeout(PATIENCE);
    assert!(got.is_ok(), "nobody woke who waits for a lock that is free");
}

#[test]
fn kept_lock_that_is_free_again_wakes_who_waits() {
    let server = RedisServer::start();
    let in_line = |_: &_| wait_for_line(&server, 1);
    kept_lock_wakes_who_waits(&server.url(), "a", Locker::lock, in_line);
}

#[test]
fn lock_kept_in_memory_that_is_free_again_wakes_who_waits() {
    let asleep = Pending::wait_until_asleep;
    kept_lock_wakes_who_waits("memory:", "attack-kept", Locker::lock, asleep);
}

/// What a reader keeps for less than its ttl ends, too.
#[test]
fn kept_by_a_reader_that_is_free_again_wakes_who_waits() {
    let server = RedisServer::start();
    let in_line = |_: &_| wait_for_line(&server, 1);
    kept_lock_wakes_who_waits(&server.url(), "a", Locker::read, in_line);
}

/// Puts so many into the line of "b", who live and hear nothing.
fn fill_line(server: &RedisServer, count: usize) {
    let mut fill = redis::pipe();
    for at in 0..count {
        let owner = format!("other-{at}");
        fill.cmd("RPUSH")
            .arg("{crosslock:b}:queue")
            .arg(&owner)
            .ignore();
        fill.cmd("HSET")
            .arg("{crosslock:b}:waiters")
            .arg(&owner)
            .arg("99999999999999 1000 x ")
            .ignore();
    }
    let counter: String = server.query(&["GET", "{crosslock:b}:fence"]);
    fill.cmd("SET")
        .arg("{crosslock:b}:fence")
        .arg(counter + "q")
        .arg("PX")
        .arg("86400000")
        .ignore();
    fill.query::<()>(&mut server.connection()).unwrap();
}

/// Who has one of several names, and waits for another in a long line, goes on having it.
#[test]
fn heartbeats_of_a_long_line_keep_what_is_held_of_several() {
    const OTHERS: usize = 2_000;
    let server = RedisServer::start();
    let ttl = millis(1_000);
    let holder = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let lock = Locker::builder(&server.url()).ttl(ttl).build().unwrap();
    let _guard = holder.lock("b").unwrap();
    fill_line(&server, OTHERS);
    let pending = calling(&lock, |lock| lock.lock_all(&["a", "b"]));
    wait_until("one to be held", PATIENCE, || {
        server.query::<i64>(&["EXISTS", "{crosslock:a}"]) == 1
    });
    for _ in 0..250 {
        let held: i64 = server.query(&["EXISTS", "{crosslock:a}"]);
        let place: Option<i64> = server.query(&["LLEN", "{crosslock:b}:queue"]);
        assert_eq!(held, 1, "its lease ran out while it waited, line {place:?}");
        thread::sleep(millis(20));
    }
    drop(pending);
}
