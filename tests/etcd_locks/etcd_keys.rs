//! What the keys of a lock are called: after leases, which owners use one after the other. And that nothing stays
//! behind but values.

use support::{Etcd, wait_until};

use crate::{PATIENCE, TTL, take, with};

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
