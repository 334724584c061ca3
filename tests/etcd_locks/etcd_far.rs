//! Waiters behind many others, which have long leases; and what becomes of the line when one of them dies.

use std::thread::{self, ScopedJoinHandle};

use crosslock::{LockGuard, Locker};
use support::{Etcd, Protocol, Proxy, wait_until};

use crate::{LINE, PATIENCE, TTL, await_places, wait_for};

/// More than are many.
const AHEAD: usize = 17;

/// What programs that aren't crosslock put in line.
const OTHERS: &str = "crosslock/n/w/other-";

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
