//! What the keys of a lock are called: after leases, which owners use one after the other.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use support::Etcd;

use super::{LINE, LONG, await_places, take, with};

#[test]
fn locking_in_a_loop_writes_the_same_keys() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(LONG));
    let mut written = BTreeSet::new();
    for _ in 0..20 {
        let guard = take(&locker);
        written.extend(server.keys("crosslock/n/"));
        guard.unlock().unwrap();
    }
    assert_eq!(written.len(), 2, "{written:?}");
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
