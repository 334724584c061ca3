//! A request comes to the server long after it was given up: it takes nothing from those that have something by then.

use std::thread;
use std::time::Duration;

use crosslock::{Error, Locker};
use support::{Etcd, Protocol, Proxy, Stopwatch};

use crate::{LINE, LONG, await_places, open, take, wait_for};

/// A way to the server, and a locker that takes it, whose leases end by themselves only after the test.
fn detour(server: &Etcd) -> (Proxy, Locker) {
    let detour = Proxy::speaking(Protocol::Http, server.own_addr());
    let locker = patient(&format!("etcd://{}/", detour.addr()));
    (detour, locker)
}

fn patient(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("it opens")
}

/// Whether a request is a transaction that puts something.
fn puts(request: &str) -> bool {
    request.contains("/v3/kv/txn") && request.contains("request_put")
}

#[test]
fn waiter_asks_again_soon_when_its_question_for_a_free_lock_has_no_answer() {
    let server = Etcd::start();
    let (detour, waiter) = detour(&server);
    let guard = take(&open(&server));
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&waiter));
        await_places(&server, 2);
        detour.cut_off_next(puts);
        guard.unlock().unwrap();
        // Its connection is closed.
        detour.await_held();
        let watch = Stopwatch::start();
        let guard = waits.join().unwrap();
        watch.assert_within(Duration::from_secs(1));
        detour.deliver();
        guard.verify().unwrap();
        guard.unlock().unwrap();
    });
}

/// Another process adopts the lock, and is about to end the lease of the old owner.
#[test]
fn question_that_comes_late_ends_no_lock_that_is_passed_on() {
    let server = Etcd::start();
    let (detour, one) = detour(&server);
    let proxy = Proxy::speaking(Protocol::Http, server.own_addr());
    let other = patient(&format!("etcd://{}/", proxy.addr()));
    detour.cut_off_next(puts);
    let owner = wait_for(&one).into_ticket().expect("a ticket");
    detour.await_held();
    thread::scope(|scope| {
        proxy.hold_next_request("/v3/lease/revoke");
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

/// The place of an owner is deleted, another has the lock meanwhile, and then the owner's question comes late.
#[test]
fn place_that_comes_back_late_is_not_that_of_the_lease() {
    let server = Etcd::start();
    let (detour, locker) = detour(&server);
    detour.cut_off_next(puts);
    let guard = wait_for(&locker);
    detour.await_held();
    guard.verify().unwrap();
    server.delete_all(LINE);
    open(&server).lock("n").unwrap().unlock().unwrap();
    assert!(server.keys(LINE).is_empty());
    detour.deliver();
    assert_eq!(server.keys(LINE).len(), 1, "the question had no effect");
    for outcome in [guard.verify(), guard.unlock()] {
        assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
    }
    assert!(server.keys(LINE).is_empty());
}
