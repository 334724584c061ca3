//! What operators do to keys and leases, past every locker.

use std::thread;
use std::time::Instant;

use crosslock::{Error, LockGuard, LostReason};
use support::{Etcd, wait_until};

use crate::{LONG, PATIENCE, await_places, open, take, wait_for, with};

#[track_caller]
fn assert_lost(guard: &LockGuard) {
    let verified = guard.verify();
    let lost =
        matches!(verified, Err(Error::Lost { reason, .. }) if reason == LostReason::NotOwner);
    assert!(lost, "{verified:?}");
}

#[test]
fn deleted_place_is_the_next_ones_at_once() {
    let server = Etcd::start();
    let (one, other) = (open(&server), open(&server));
    for revoke in [false, true] {
        let guard = take(&one);
        let place = await_places(&server, 1);
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait_for(&other));
            await_places(&server, 2);
            if revoke {
                server.revoke(server.lease_of(&place[0]));
            } else {
                server.delete(&place[0]);
            }
            let next = waits.join().unwrap();
            assert!(next.abandoned());
            assert_lost(&guard);
            next.unlock().unwrap();
        });
        assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    }
    assert!(server.keys("").is_empty());
}

#[test]
fn waiter_whose_place_is_gone_takes_another() {
    let server = Etcd::start();
    let (one, other) = (
        open(&server),
        with(&server, |builder| builder.ttl(crate::TTL)),
    );
    for revoke in [false, true] {
        let guard = take(&one);
        thread::scope(|scope| {
            let waits = scope.spawn(|| wait_for(&other));
            let places = await_places(&server, 2);
            let holder = await_holder(&server, &places);
            let place = places.iter().find(|place| **place != holder).unwrap();
            if revoke {
                server.revoke(server.lease_of(place));
            } else {
                server.delete(place);
            }
            wait_until("another place", PATIENCE, || {
                server.keys(crate::LINE).len() == 2
            });
            guard.unlock().unwrap();
            waits.join().unwrap().unlock().unwrap();
        });
    }
    assert!(server.keys("").is_empty());
}

/// The place of the one that has entered.
fn await_holder(server: &Etcd, places: &[String]) -> String {
    let entered = server.keys("crosslock/n/h/");
    let id = entered[0].rsplit('/').next().unwrap().to_owned();
    places
        .iter()
        .find(|place| place.ends_with(&id))
        .unwrap()
        .clone()
}

#[test]
fn one_of_several_names_is_deleted() {
    let server = Etcd::start();
    let locker = open(&server);
    let guard = locker.lock_all(&["m", "n"]).unwrap();
    server.delete_all("crosslock/m/w/");
    assert_lost(&guard);
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    take(&locker).unlock().unwrap();
    assert!(locker.try_lock("m").unwrap().unwrap().abandoned());
    assert!(server.keys("").is_empty());
}

#[test]
fn compaction_disturbs_no_waiter() {
    let server = Etcd::start();
    let (one, other) = (open(&server), open(&server));
    let guard = take(&one);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&other));
        await_places(&server, 2);
        for number in 0..10 {
            server.put("unrelated", &number.to_string());
            server.compact();
        }
        let released = Instant::now();
        guard.unlock().unwrap();
        waits.join().unwrap().unlock().unwrap();
        assert!(released.elapsed() < PATIENCE);
    });
}

#[test]
fn memory_of_who_was_let_in_is_made_anew() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(crate::TTL));
    take(&locker).unlock().unwrap();
    let guard = take(&locker);
    let entered = server.keys("crosslock/n/h/");
    // As if a day had passed.
    server.revoke(server.lease_of(&entered[0]));
    assert!(server.keys("crosslock/n/h/").is_empty());
    guard.verify().unwrap();
    guard.unlock().unwrap();
    let guard = take(&locker);
    assert_eq!(server.keys("crosslock/n/h/").len(), 1);
    guard.unlock().unwrap();
    let mute = with(&server, |builder| builder.ttl(LONG));
    drop(take(&mute));
    assert!(server.keys("").is_empty());
}

#[test]
fn holder_says_again_that_it_was_let_in() {
    let server = Etcd::start();
    let locker = with(&server, |builder| builder.ttl(crate::TTL));
    let guard = take(&locker);
    server.delete_all("crosslock/n/h/");
    wait_until("it says so again", PATIENCE, || {
        server.keys("crosslock/n/h/").len() == 1
    });
    guard.unlock().unwrap();
    assert!(server.keys("").is_empty());
}

#[test]
fn other_texts_in_line_are_heeded_and_left_alone() {
    let server = Etcd::start();
    let locker = open(&server);
    for text in ["", "x", "a lock of somebody's", "r since=1"] {
        server.put("crosslock/n/w/mine", text);
        assert!(locker.try_lock("n").unwrap().is_none(), "{text:?}");
        assert!(locker.try_read("n").unwrap().is_none(), "{text:?}");
        assert_eq!(locker.list("").unwrap().count(), 1);
        assert_eq!(server.get("crosslock/n/w/mine").as_deref(), Some(text));
        server.delete("crosslock/n/w/mine");
        take(&locker).unlock().unwrap();
    }
}
