//! Waiters behind many others, which have long leases; and what becomes of the line when one of them dies.

use std::thread::{self, ScopedJoinHandle};

use crosslock::{LockGuard, Locker};
use support::{Etcd, Protocol, Proxy, wait_until};

use crate::{LINE, PATIENCE, TTL, await_places, open, take, wait_for};

/// More than are many.
const AHEAD: usize = 17;

/// What programs that aren't crosslock put in line.
const OTHERS: &str = "crosslock/n/w/other-";

/// This bit of its number says that a lease is a long one.
const LONG: i64 = 1 << 62;

fn line_up(server: &Etcd) {
    (0..AHEAD).for_each(|nth| server.put(&format!("{OTHERS}{nth}"), "waits"));
}

fn hasty(url: &str) -> Locker {
    Locker::builder(url).ttl(TTL).build().expect("it opens")
}

/// The place of the only waiter that is crosslock.
fn place(server: &Etcd) -> String {
    let places = await_places(server, AHEAD + 1);
    let mut own = places.into_iter().filter(|key| !key.starts_with(OTHERS));
    own.next().expect("there is one")
}

fn seconds(server: &Etcd, place: &str) -> u64 {
    server.granted_ttl(server.lease_of(place))
}

#[track_caller]
fn await_long(server: &Etcd, place: &str) {
    wait_until("a long lease", PATIENCE, || {
        seconds(server, place) == 16 * TTL.as_secs()
    });
}

#[track_caller]
fn assert_in(server: &Etcd, place: &str, guard: LockGuard) {
    assert_eq!(server.keys(LINE), [place]);
    assert_eq!(seconds(server, place), TTL.as_secs(), "a holder's lease");
    // Longer than its ttl: it is renewed.
    thread::sleep(TTL + TTL / 2);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    wait_until("all to be released", PATIENCE, || {
        server.keys("").is_empty()
    });
}

/// A waiter behind many, whose question by which its entry is to be moved to a long lease is held up.
fn while_its_move_is_held_up(
    meanwhile: impl FnOnce(&Etcd, &Proxy, &str, ScopedJoinHandle<'_, LockGuard>),
) {
    let server = Etcd::start();
    line_up(&server);
    let detour = Proxy::speaking(Protocol::Http, server.own_addr());
    let locker = hasty(&format!("etcd://{}/", detour.addr()));
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker));
        let place = place(&server);
        detour.cut_off_next(|request| {
            request.contains("/v3/kv/txn") && request.contains("request_put")
        });
        detour.await_held();
        meanwhile(&server, &detour, &place, waits);
    });
}

/// A late copy of the question by which an entry was moved finds that it was written since.
#[test]
fn long_lease_that_comes_late_is_not_that_of_a_holder() {
    while_its_move_is_held_up(|server, detour, place, waits| {
        server.delete_all(OTHERS);
        let guard = waits.join().unwrap();
        detour.deliver();
        assert_in(server, place, guard);
    });
}

/// The servers choose numbers for `etcdctl lock`, also such ones.
#[test]
fn holder_that_is_not_crosslock_is_not_passed_over() {
    let server = Etcd::start();
    let (guard, locker) = (take(&open(&server)), hasty(&server.url()));
    let other = format!("{OTHERS}1");
    server.put_under((LONG | 7, 600), &other, "");
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker));
        await_places(&server, 3);
        guard.unlock().unwrap();
        thread::sleep(3 * TTL);
        assert!(server.keys(LINE).contains(&other));
        server.delete(&other);
        waits.join().unwrap().unlock().unwrap();
    });
}

/// It goes in after the waiter behind it has seen that it hadn't.
#[test]
fn waiter_that_has_gone_in_is_not_passed_over() {
    let server = Etcd::start();
    line_up(&server);
    let [proxy, other_proxy] = [(); 2].map(|()| Proxy::speaking(Protocol::Http, server.own_addr()));
    let locker = |proxy: &Proxy| hasty(&format!("etcd://{}/", proxy.addr()));
    let (slow, next) = (locker(&proxy), locker(&other_proxy));
    thread::scope(|scope| {
        let slow = scope.spawn(|| wait_for(&slow));
        let place = place(&server);
        await_long(&server, &place);
        let next = scope.spawn(|| wait_for(&next));
        await_places(&server, AHEAD + 2);
        proxy.hold_next_request("request_put");
        other_proxy.hold_next_request("request_delete_range");
        server.delete_all(OTHERS);
        proxy.await_held();
        other_proxy.await_held();
        proxy.pass_held();
        let first = slow.join().unwrap();
        other_proxy.pass_held();
        thread::sleep(TTL);
        assert!(!next.is_finished(), "two have it");
        first.verify().unwrap();
        first.unlock().unwrap();
        next.join().unwrap().unlock().unwrap();
    });
}

/// A late copy of the question by which its entry is to be moved comes when it has seen that it wasn't.
#[test]
fn waiter_keeps_its_place_when_its_long_lease_comes_late() {
    while_its_move_is_held_up(|server, detour, place, waits| {
        let behind = format!("{LINE}zzz");
        server.put(&behind, "waits");
        // It looks after a third of its ttl.
        thread::sleep(TTL);
        detour.deliver();
        await_long(server, place);
        server.delete_all(OTHERS);
        let guard = waits.join().unwrap();
        server.delete(&behind);
        assert_in(server, place, guard);
    });
}
