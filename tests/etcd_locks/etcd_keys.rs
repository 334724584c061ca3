//! What the keys of a lock are called: after leases, which owners use one after the other. And that nothing stays
//! behind but values.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use support::{Etcd, wait_until};

use crate::{LONG, PATIENCE, TTL, take, with};

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
