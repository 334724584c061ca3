//! What stays behind: nothing, but values.

use std::thread;

use support::{Etcd, wait_until};

use crate::{LONG, PATIENCE, TTL, await_places, open, take, wait_for, with};

#[test]
fn locker_that_is_gone_leaves_neither_keys_nor_leases() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(TTL));
    take(&locker).unlock().unwrap();
    drop(locker.read("n").unwrap());
    drop(locker.semaphore("n", 3).unwrap().acquire().unwrap());
    drop(locker.lock_all(&["n", "m"]).unwrap());
    drop(take(&locker).downgrade().unwrap());
    let ticket = take(&locker).into_ticket().expect("a ticket");
    drop(locker.adopt(ticket).unwrap());
    let mutex = locker.mutex("v", 0).unwrap();
    mutex.set(7).unwrap();
    let (guard, other) = (take(&locker), with(&server, |builder| builder.ttl(TTL)));
    assert!(other.try_lock("n").unwrap().is_none());
    assert!(other.try_lock_for("n", TTL / 20).unwrap().is_none());
    drop((guard, mutex, locker, other));
    assert_eq!(server.keys(""), ["crosslock/v/value"]);
    wait_until("the leases to end", PATIENCE, || server.leases().is_empty());
}

#[test]
fn loop_that_locks_uses_one_lease() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(LONG));
    for _ in 0..50 {
        take(&locker).unlock().unwrap();
        assert!(with_others(&locker));
    }
    // One more remembers who was let in.
    assert!(server.leases().len() <= 2, "{:?}", server.leases());
}

fn with_others(locker: &crosslock::Locker) -> bool {
    locker.try_read("n").unwrap().is_some()
}

#[test]
fn waiter_that_gives_up_leaves_no_key() {
    let server = Etcd::start();
    let (one, other) = (open(&server), open(&server));
    let guard = take(&one);
    let key = await_places(&server, 1);
    assert!(other.try_lock_for("n", TTL / 10).unwrap().is_none());
    assert!(other.try_read_for("n", TTL / 10).unwrap().is_none());
    assert!(other.try_lock("n").unwrap().is_none());
    assert_eq!(await_places(&server, 1), key);
    guard.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[test]
fn process_that_forgets_its_guard_is_told_to_the_next_only() {
    let server = Etcd::start();
    let careless = with(&server, |builder| builder.ttl(TTL).renew(false));
    std::mem::forget(take(&careless));
    drop(careless);
    let locker = open(&server);
    assert!(wait_for(&locker).was_abandoned());
    assert!(!take(&locker).was_abandoned());
    assert!(server.keys("").is_empty());
}

#[test]
fn waiters_keep_their_places_for_several_ttls() {
    let server = Etcd::start();
    let lockers = [(); 3].map(|()| with(&server, |builder| builder.ttl(TTL)));
    let guard = take(&lockers[0]);
    thread::scope(|scope| {
        let waits = [1, 2].map(|number| {
            let locker = &lockers[number];
            let waits = scope.spawn(move || wait_for(locker).fencing_token());
            await_places(&server, number + 1);
            waits
        });
        let places = await_places(&server, 3);
        thread::sleep(2 * TTL + TTL / 2);
        assert_eq!(await_places(&server, 3), places);
        guard.unlock().unwrap();
        let [first, second] = waits.map(|waits| waits.join().unwrap());
        assert!(first < second, "they came in that order");
    });
}
