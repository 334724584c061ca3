//! How many requests calls take, and that nothing stays behind but values.

use std::time::Duration;

use crosslock::{Error, Locker};
use support::{Etcd, wait_until};

use crate::{LONG, PATIENCE, TTL, take, with};

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
fn lock_that_is_free_takes_one_request_and_its_release_another() {
    const CYCLES: u64 = 50;
    let server = Etcd::setup().proxies().start();
    let [locker, other] = [(); 2].map(|()| with(&server, |builder| builder.ttl(LONG)));
    take(&locker).unlock().unwrap();
    let before = server.proxy().requests();
    for _ in 0..CYCLES {
        take(&locker).unlock().unwrap();
    }
    assert_eq!(server.proxy().requests() - before, 2 * CYCLES);
    let before = server.proxy().requests();
    for _ in 0..CYCLES {
        locker.lock_all(&["a", "b", "c"]).unwrap().unlock().unwrap();
        locker.read("n").unwrap().unlock().unwrap();
    }
    assert_eq!(server.proxy().requests() - before, 4 * CYCLES);
    let _guard = take(&locker);
    assert!(other.try_lock("n").unwrap().is_none());
    let before = server.proxy().requests();
    for _ in 0..CYCLES {
        assert!(other.try_lock("n").unwrap().is_none());
    }
    assert_eq!(server.proxy().requests() - before, CYCLES);
}

/// Whatever is wrong with the one that was asked for.
#[test]
fn ttl_that_is_not_possible_is_answered_by_the_one_range_that_is() {
    // The servers' shortest lease is 1.5 times as long.
    let server = Etcd::setup().flag("election-timeout", "1000").start();
    for millis in [500, 1_000, 1_500, 2_500] {
        let ttl = Duration::from_millis(millis);
        let opened = Locker::builder(&server.url()).ttl(ttl).build();
        let Err(Error::InvalidOption { option, reason, .. }) = opened else {
            panic!("{ttl:?}: {opened:?}");
        };
        assert_eq!(option, "ttl");
        assert!(reason.contains("whole seconds from 2s to 24 h"), "{reason}");
    }
    assert!(server.leases().is_empty());
    with(&server, |builder| builder.ttl(Duration::from_secs(2)));
}
