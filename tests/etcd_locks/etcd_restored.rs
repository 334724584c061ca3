//! Servers come back with older data, as after a snapshot was restored: what the data says is true, and nobody hangs.

use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use support::{Etcd, wait_until};

use crate::{LONG, PATIENCE, await_places, open, take, wait_for, with};

/// Of a lease that is renewed, or ends, within a test: longer than a server takes to start.
const BRIEF: Duration = Duration::from_secs(6);

fn patient(server: &Etcd) -> Locker {
    with(server, |builder| builder.ttl(LONG))
}

/// Longer than a test waits for it: at its end it would ask once more.
fn wait_long(locker: &Locker) -> LockGuard {
    locker.try_lock_for("n", 3 * PATIENCE).unwrap().unwrap()
}

#[track_caller]
fn is_let_in(waits: ScopedJoinHandle<'_, LockGuard>) -> LockGuard {
    wait_until("the lock", PATIENCE, || waits.is_finished());
    waits.join().unwrap()
}

#[test]
fn guards_that_the_data_does_not_have_are_lost_at_their_next_renewal() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(BRIEF));
    let permits = locker.semaphore("s", 2).unwrap();
    let backup = server.back_up();
    let guards = [
        take(&locker),
        locker.read("r").unwrap(),
        permits.acquire().unwrap(),
    ];
    let token = guards[0].fencing_token();
    server.roll_back(&backup);
    for guard in &guards {
        guard.lost().recv_timeout(PATIENCE).expect("it is told");
        assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    }
    // Tokens begin again with the revisions.
    let next = wait_for(&locker);
    assert!(!next.was_abandoned() && next.fencing_token() <= token);
    next.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[test]
fn guard_that_the_data_has_goes_on() {
    let server = Etcd::start();
    let (one, other) = (patient(&server), open(&server));
    let counter = one.mutex("v", 0).unwrap();
    let guard = take(&one);
    counter.set(1).unwrap();
    let backup = server.back_up();
    counter.set(2).unwrap();
    server.roll_back(&backup);
    assert!(other.try_lock("n").unwrap().is_none());
    guard.verify().unwrap();
    guard.unlock().unwrap();
    wait_for(&other).unlock().unwrap();
    assert_eq!(counter.peek().unwrap(), 1);
}

#[test]
fn lock_that_the_data_has_is_back_until_its_lease_ends() {
    let server = Etcd::start();
    let brief = with(&server, |builder| builder.ttl(BRIEF));
    let guard = take(&brief);
    let backup = server.back_up();
    guard.unlock().unwrap();
    drop(brief);
    server.roll_back(&backup);
    let other = patient(&server);
    assert!(other.try_lock("n").unwrap().is_none());
    let next = wait_for(&other);
    assert!(next.was_abandoned());
    next.unlock().unwrap();
}

/// The lease of what came back is given to another owner, which would keep it.
#[test]
fn lock_that_came_back_is_not_kept_by_those_who_lock_something_else() {
    let server = Etcd::start();
    let (locker, other) = (patient(&server), patient(&server));
    let guard = take(&locker);
    let backup = server.back_up();
    guard.unlock().unwrap();
    (0..10).for_each(|_| server.put("else", ""));
    server.roll_back(&backup);
    let guard = locker.try_lock_for("m", PATIENCE).unwrap().expect("free");
    wait_for(&other).unlock().unwrap();
    guard.verify().unwrap();
}

/// It would wait for itself.
#[test]
fn lock_that_came_back_is_not_kept_by_whoever_released_it() {
    let server = Etcd::start();
    let locker = patient(&server);
    type Take = fn(&Locker) -> LockGuard;
    let takes: [Take; 3] = [
        wait_for,
        |locker| locker.try_read_for("n", PATIENCE).unwrap().expect("free"),
        |locker| {
            let both = locker.try_lock_all_for(&["m", "n"], PATIENCE);
            drop(both.unwrap().expect("free"));
            wait_for(locker)
        },
    ];
    for again in takes {
        let guard = take(&locker);
        let backup = server.back_up();
        guard.unlock().unwrap();
        server.roll_back(&backup);
        again(&locker).unlock().unwrap();
        assert!(server.keys("crosslock/n/w/").is_empty());
    }
}

#[test]
fn waiters_that_the_data_does_not_have_wait_anew() {
    let server = Etcd::start();
    let holder = patient(&server);
    let waiters = [(); 2].map(|()| patient(&server));
    let guard = take(&holder);
    let backup = server.back_up();
    thread::scope(|scope| {
        let mut wait = waiters.iter().enumerate().map(|(ahead, locker)| {
            let waits = scope.spawn(move || wait_long(locker));
            await_places(&server, ahead + 2);
            waits
        });
        let (one, other) = (wait.next().unwrap(), wait.next().unwrap());
        server.roll_back(&backup);
        await_places(&server, 3);
        guard.unlock().unwrap();
        // Who of them came first is forgotten.
        wait_until("the lock", PATIENCE, || {
            one.is_finished() || other.is_finished()
        });
        let (first, second) = if one.is_finished() {
            (one, other)
        } else {
            (other, one)
        };
        is_let_in(first).unlock().unwrap();
        is_let_in(second).unlock().unwrap();
    });
}

/// What it saw is ahead of the servers that it watches next.
#[test]
fn waiter_does_not_watch_for_what_the_data_has_not_come_to() {
    let (old, restored) = [(); 2].map(|()| Etcd::setup().proxies().start()).into();
    let holders = [(); 2].map(|()| direct(&old));
    let backup = old.back_up();
    restored.roll_back(&backup);
    let _guard = take(&holders[0]);
    let waiter = with(&old, |builder| builder.ttl(LONG));
    thread::scope(|scope| {
        let ahead = scope.spawn(|| holders[1].try_lock_for("n", PATIENCE / 4).unwrap());
        await_places(&old, 2);
        let waits = scope.spawn(|| wait_long(&waiter));
        await_places(&old, 3);
        // It has another connection to the old server, on which it will ask.
        waiter.inspect("n").unwrap();
        old.proxy().point_to(restored.own_addr());
        old.proxy().lose_next_reply("/v3/watch", true);
        let asked = old.proxy().requests();
        // It looks at the old server, has no answer to its watch, and then watches the other one.
        assert!(ahead.join().unwrap().is_none());
        wait_until("its watch", PATIENCE, || {
            old.proxy().requests() >= asked + 2
        });
        old.kill();
        is_let_in(waits).unlock().unwrap();
        assert!(restored.keys("crosslock/n/w/").is_empty());
    });
}

fn direct(server: &Etcd) -> Locker {
    let url = format!("etcd://{}/", server.own_addr());
    Locker::builder(&url).ttl(LONG).build().unwrap()
}

#[test]
fn lock_is_adopted_by_whom_the_data_does_not_know() {
    let server = Etcd::start();
    let one = patient(&server);
    let ticket = take(&one).into_ticket().expect("a ticket");
    let backup = server.back_up();
    let other = patient(&server);
    server.roll_back(&backup);
    let guard = other.adopt(ticket).unwrap();
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert!(server.keys("crosslock/n/w/").is_empty());
}
