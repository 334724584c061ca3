//! etcd's own recipe, which `etcdctl lock` and the server's `Lock` service share, in the same line.

use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosslock::{LockState, Wants};
use serde_json::{Value, json};
use support::Etcd;

use crate::{LINE, await_places, open, take, wait_for};

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

#[test]
fn recipe_is_broken_as_others_are() {
    let server = Etcd::start();
    let (locker, _key) = (open(&server), lock(&server));
    let broken = locker.break_lock("n").unwrap();
    assert!(broken.len() == 1 && broken[0].party.is_none());
    take(&locker).unlock().unwrap();
}
