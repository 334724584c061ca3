//! A request comes to the server long after it was given up: it takes nothing from those that have something by then.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use support::{Etcd, Protocol, Proxy, Stopwatch};

use crate::{LINE, LONG, PATIENCE, await_places, open, take};

/// Its leases end by themselves only after the test.
fn patient(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("it opens")
}

fn way(detour: &Proxy) -> String {
    format!("etcd://{}/", detour.addr())
}

/// How soon a call goes on whose question has no answer, because the connection was closed.
const SOON: Duration = Duration::from_secs(1);

/// Whether a request is a transaction that puts something.
fn puts(request: &str) -> bool {
    request.contains("/v3/kv/txn") && request.contains("request_put")
}

#[test]
fn waiter_asks_again_soon_when_its_question_for_a_free_lock_has_no_answer() {
    let server = Etcd::start();
    let detour = Proxy::speaking(Protocol::Http, server.own_addr());
    let (holder, waiter) = (open(&server), patient(&way(&detour)));
    let guard = take(&holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| lock(&waiter));
        await_places(&server, 2);
        detour.cut_off_next(puts);
        guard.unlock().unwrap();
        detour.await_held();
        let watch = Stopwatch::start();
        let guard = waits.join().unwrap();
        watch.assert_within(SOON);
        detour.deliver();
        guard.verify().unwrap();
        guard.unlock().unwrap();
    });
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
    let detour = Proxy::speaking(Protocol::Http, server.own_addr());
    let proxy = Proxy::speaking(Protocol::Http, server.own_addr());
    let (one, other) = (
        patient(&way(&detour)),
        patient(&format!("etcd://{}/", proxy.addr())),
    );
    detour.cut_off_next(puts);
    let owner = lock(&one).into_ticket().expect("a ticket");
    detour.await_held();
    thread::scope(|scope| {
        proxy.hold_next_request(REVOKE);
        let adopts = scope.spawn(|| other.adopt(owner).unwrap());
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
    let detour = Proxy::speaking(Protocol::Http, server.own_addr());
    let proxy = Proxy::speaking(Protocol::Http, detour.addr());
    let locker = patient(&format!("etcd://{}/", proxy.addr()));
    detour.cut_off_next(puts);
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

/// The place of an owner is deleted, another has the lock and stores 7 meanwhile, and then the owner's question comes
/// late.
fn lose_and_regain(server: &Etcd, detour: &Proxy) {
    server.delete_all(LINE);
    open(server).mutex("n", 0).unwrap().set(7).unwrap();
    assert!(server.keys(LINE).is_empty());
    detour.deliver();
    assert_eq!(server.keys(LINE).len(), 1, "the question had no effect");
}

#[track_caller]
fn assert_lost(error: &Error) {
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}

#[test]
fn place_that_comes_back_late_is_not_that_of_the_lease() {
    let server = Etcd::start();
    let detour = Proxy::speaking(Protocol::Http, server.own_addr());
    let locker = patient(&way(&detour));
    detour.cut_off_next(puts);
    let guard = lock(&locker);
    detour.await_held();
    guard.verify().unwrap();
    lose_and_regain(&server, &detour);
    assert_lost(&guard.verify().unwrap_err());
    assert_lost(&guard.unlock().unwrap_err());
    assert!(server.keys("crosslock/n/w").is_empty());
}
