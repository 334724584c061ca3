//! A request comes to the server long after it was given up: it takes nothing from those that have something by then.

use std::thread;

use crosslock::{LockGuard, Locker};
use support::{Detour, Etcd, Protocol, Proxy};

use crate::{LINE, LONG, PATIENCE, await_places, open, take};

/// Its leases end by themselves only after the test.
fn patient(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("it opens")
}

fn way(detour: &Detour) -> String {
    format!("etcd://{}/", detour.addr())
}

/// Whether a request is a transaction that puts something.
fn puts(request: &str) -> bool {
    request.contains("/v3/kv/txn") && request.contains("request_put")
}

fn only_deletes(request: &str) -> bool {
    request.contains("request_delete_range") && !request.contains("request_put")
}

#[test]
fn places_that_are_given_up_late_are_not_those_of_the_holder() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let (holder, waiter) = (open(&server), patient(&way(&detour)));
    let guard = take(&holder);
    thread::scope(|scope| {
        let names = ["m", "n"];
        let waits = scope.spawn(move || waiter.try_lock_all_for(&names, PATIENCE));
        await_places(&server, 2);
        // It finds that it can't have both, and gives up the other.
        detour.hold(only_deletes);
        server.delete_all("crosslock/m/w/");
        guard.unlock().unwrap();
        detour.await_held();
        let both = waits.join().unwrap().unwrap().expect("nobody has them");
        detour.deliver();
        assert!(
            open(&server).try_lock("n").unwrap().is_none(),
            "two have it"
        );
        both.verify().unwrap();
        both.unlock().unwrap();
    });
    assert!(server.keys("").is_empty());
}

#[test]
fn question_that_comes_late_takes_no_lock_that_was_passed_on() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let (one, other) = (patient(&way(&detour)), open(&server));
    detour.hold(puts);
    let guard = one.try_lock_for("n", PATIENCE).unwrap().expect("free");
    detour.await_held();
    let adopted = other.adopt("n", guard.into_owner()).unwrap();
    detour.deliver();
    adopted.verify().unwrap();
    // What the late question would have had it end with.
    drop(one);
    assert!(open(&server).try_lock("n").unwrap().is_none());
    adopted.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

/// A request that ends a lease.
const REVOKE: &str = "/v3/lease/revoke";

fn lock(locker: &Locker) -> LockGuard {
    let guard = locker.try_lock_for("n", PATIENCE).expect("it answers");
    guard.expect("it is free")
}

/// Another process adopts the lock, and is about to end the lease of the old owner.
#[test]
fn question_that_comes_late_ends_no_lock_that_is_passed_on() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let proxy = Proxy::speaking(Protocol::Http, server.own_addr());
    let (one, other) = (
        patient(&way(&detour)),
        patient(&format!("etcd://{}/", proxy.addr())),
    );
    detour.hold(puts);
    let owner = lock(&one).into_owner();
    detour.await_held();
    thread::scope(|scope| {
        proxy.hold_next_request(REVOKE);
        let adopts = scope.spawn(|| other.adopt("n", owner).unwrap());
        proxy.await_held();
        detour.deliver();
        proxy.pass_held();
        let adopted = adopts.join().unwrap();
        let third = open(&server).try_lock("n").unwrap();
        assert!(third.is_none(), "two have it");
        adopted.verify().unwrap();
        adopted.unlock().unwrap();
    });
    assert!(server.keys("").is_empty());
}

/// The lock is released, and its lease is about to be ended.
#[test]
fn question_that_comes_late_ends_no_lock_that_stays_taken() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let proxy = Proxy::speaking(Protocol::Http, detour.addr());
    let locker = patient(&format!("etcd://{}/", proxy.addr()));
    detour.hold(puts);
    let guard = lock(&locker);
    detour.await_held();
    guard.at_least_for(LONG);
    thread::scope(|scope| {
        proxy.hold_next_request(REVOKE);
        let releases = scope.spawn(|| guard.unlock().unwrap());
        proxy.await_held();
        detour.deliver();
        proxy.pass_held();
        releases.join().unwrap();
    });
    let next = open(&server).try_lock("n").unwrap();
    assert!(next.is_none(), "its time isn't over");
    assert_eq!(server.keys(LINE).len(), 1);
}

#[cfg(feature = "value")]
#[test]
fn removal_that_comes_late_removes_no_newer_value() {
    let server = Etcd::start();
    let detour = Detour::to(server.own_addr());
    let counter = patient(&way(&detour)).mutex("n", 0).unwrap();
    counter.set(1).unwrap();
    detour.hold(only_deletes);
    counter.remove().unwrap();
    detour.await_held();
    counter.set(2).unwrap();
    detour.deliver();
    assert_eq!(counter.get().unwrap(), 2);
}
