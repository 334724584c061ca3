//! What the keys of a lock are called: after leases, which owners use one after the other. And that nothing stays
//! behind but values.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use support::{Etcd, wait_until};

use crate::{LINE, LONG, PATIENCE, TTL, await_places, take, wait_for, with};

#[test]
fn locking_in_a_loop_writes_the_same_keys_under_the_same_leases() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(LONG));
    let mut written = BTreeSet::new();
    for _ in 0..20 {
        let guard = take(&locker);
        written.extend(server.keys("crosslock/n/"));
        guard.unlock().unwrap();
        drop(locker.try_read("n").unwrap().expect("it is free"));
    }
    assert_eq!(written.len(), 2, "{written:?}");
    // One more remembers who was let in.
    assert!(server.leases().len() <= 2, "{:?}", server.leases());
}

#[test]
fn owner_that_panicked_is_not_hidden_by_the_next_of_its_process() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(LONG));
    for _ in 0..2 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = take(&locker);
            panic!("while it is held");
        }));
        assert!(panicked.is_err());
        let guard = take(&locker);
        assert!(guard.was_abandoned());
        guard.unlock().unwrap();
        assert!(!take(&locker).was_abandoned());
    }
}

#[test]
fn lock_that_stays_taken_keeps_its_key_to_itself() {
    let server = Etcd::start();
    let keep = Duration::from_secs(4);
    let locker = with(&server, |builder| builder.ttl(LONG));
    let guard = take(&locker);
    guard.at_least_for(keep);
    guard.unlock().unwrap();
    let kept = await_places(&server, 1);
    // Another owner of this process waits, and comes to the lock.
    let guard = super::wait_for(&locker);
    assert_ne!(server.keys(LINE), kept);
    assert!(!guard.was_abandoned());
}

#[test]
fn reader_that_goes_on_as_another_keeps_its_key_to_itself() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(LONG));
    let ticket = locker.read("n").unwrap().into_ticket().expect("a ticket");
    let adopted = locker.adopt(&ticket).unwrap();
    let other = locker.try_read("n").unwrap();
    let other = other.expect("readers share it");
    assert_eq!(server.keys(LINE).len(), 2);
    other.unlock().unwrap();
    adopted.verify().unwrap();
    adopted.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

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
