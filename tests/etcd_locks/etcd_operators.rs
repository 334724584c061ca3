//! What operators do to keys and leases, past every locker; and etcd's own recipe, which `etcdctl lock` and the
//! server's `Lock` service share, in the same line.

use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosslock::{Error, LockGuard, LockState, Locker, LostReason, Wants};
use serde_json::{Value, json};
use support::Etcd;

use crate::{LINE, await_places, open, take, wait_for};

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
            assert!(next.was_abandoned());
            assert_lost(&guard);
            next.unlock().unwrap();
        });
        assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    }
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

#[test]
fn documented_rights_are_enough_and_limit_to_their_namespace() {
    let server = Etcd::setup().login().start();
    let call = |path: &str, body| server.call(&format!("/v3/auth/{path}"), &body);
    call("role/add", json!({ "name": "locks" }));
    // As `grant-permission locks readwrite crosslock/ --prefix`.
    let (key, end) = (STANDARD.encode("crosslock/"), STANDARD.encode("crosslock0"));
    let perm = json!({ "permType": 2, "key": key, "range_end": end });
    call("role/grant", json!({ "name": "locks", "perm": perm }));
    call(
        "user/add",
        json!({ "name": "app", "password": "swordfish" }),
    );
    call("user/grant", json!({ "user": "app", "role": "locks" }));
    let url = format!("etcd://app:swordfish@{}", server.addr());
    let [one, other] = [(); 2].map(|()| Locker::builder(&url).ttl(crate::TTL).build().unwrap());
    let guard = take(&one);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&other));
        await_places(&server, 2);
        // Some renewals, of the holder and of the waiter.
        thread::sleep(crate::TTL);
        guard.downgrade().unwrap().unlock().unwrap();
        let ticket = waits.join().unwrap().into_ticket().expect("a ticket");
        one.adopt(ticket).unwrap().unlock().unwrap();
    });
    let mutex = one.mutex("v", 0).unwrap();
    mutex.set(7).unwrap();
    mutex.remove().unwrap();
    let guards = (
        one.lock_all(&["n", "m"]).unwrap(),
        one.semaphore("s", 2).unwrap().acquire(),
    );
    assert_eq!(one.list("").unwrap().count(), 3);
    assert_eq!(other.inspect("n").unwrap().holders.len(), 1);
    assert_eq!(other.break_lock("n").unwrap().len(), 1);
    assert!(guards.0.verify().is_err());
    other.diagnose().unwrap();
    let foreign = one.with_namespace("other").unwrap().try_lock("n");
    assert!(matches!(foreign, Err(Error::Denied { .. })), "{foreign:?}");
}

/// Locks as `etcdctl lock crosslock/n/w` does; returns its key.
fn lock(server: &Etcd) -> Value {
    let lease = server.call("/v3/lease/grant", &json!({ "TTL": "60" }))["ID"].clone();
    let name = STANDARD.encode(LINE.trim_end_matches('/'));
    let locked = server.call("/v3/lock/lock", &json!({ "name": name, "lease": lease }));
    locked["key"].clone()
}

fn unlock(server: &Etcd, key: &Value) {
    server.call("/v3/lock/unlock", &json!({ "key": key }));
}

#[test]
fn recipe_keeps_out_whoever_wants_the_lock() {
    let server = Etcd::start();
    let (locker, key) = (open(&server), lock(&server));
    assert!(locker.try_lock("n").unwrap().is_none());
    assert!(locker.try_read("n").unwrap().is_none());
    let seen = locker.inspect("n").unwrap();
    assert_eq!(seen.state, LockState::Exclusive);
    assert!(seen.holders[0].party.is_none() && seen.holders[0].remaining.is_some());
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&locker).was_abandoned());
        await_places(&server, 2);
        unlock(&server, &key);
        assert!(!waits.join().unwrap(), "nobody says so of the recipe");
    });
    assert!(server.keys("crosslock/").is_empty());
    let _key = lock(&server);
    let broken = locker.break_lock("n").unwrap();
    assert!(broken.len() == 1 && broken[0].party.is_none());
    take(&locker).unlock().unwrap();
}

#[test]
fn recipe_waits_for_all_who_came_before() {
    let server = Etcd::start();
    let locker = open(&server);
    for reads in [false, true] {
        let guard = if reads {
            locker.read("n").unwrap()
        } else {
            take(&locker)
        };
        thread::scope(|scope| {
            let waits = scope.spawn(|| lock(&server));
            await_places(&server, 2);
            let waiters = locker.inspect("n").unwrap().waiters;
            assert!(waiters[0].party.is_none() && waiters[0].wants == Wants::Exclusive);
            assert!(!waits.is_finished());
            // Whoever comes behind it waits for it.
            assert!(locker.try_read("n").unwrap().is_none());
            guard.unlock().unwrap();
            unlock(&server, &waits.join().unwrap());
        });
        take(&locker).unlock().unwrap();
    }
}
