//! A lock was lost, another held it and stored a value, and a late copy of the first owner's request takes it for that
//! owner again.

use std::thread;

use crosslock::{Error, MutexGuard};

use super::lost_replies::{KEYS, generous, in_turn, server_with_proxy};
use super::*;
use support::RedisServer;
use support::scripts::{ACQUIRE, RELEASE, digest};

/// The lock of the owner that has it is lost, and comes back to it after another has stored 7.
fn lose_and_regain(server: &RedisServer) {
    let owner = server.get(LOCK).expect("an owner");
    server.query::<()>(&["DEL", LOCK]);
    store_another(server);
    let digest = digest(ACQUIRE);
    let words = [
        &["EVALSHA", &digest, "6"],
        &KEYS[..6],
        &[&owner, "30000", "x"],
    ];
    server.query::<redis::Value>(&words.concat());
    assert_eq!(server.get(LOCK), Some(owner));
}

/// Another takes the lock, stores 7, and releases it.
fn store_another(server: &RedisServer) {
    let other = Locker::open(&server.url()).unwrap();
    other.mutex(NAME, 0u64).unwrap().set(7).unwrap();
}

#[track_caller]
fn assert_lost(error: &Error) {
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}

#[test]
fn verify_finds_that_another_had_the_lock_meanwhile() {
    let server = RedisServer::start();
    let locker = generous(&server.url());
    let guard = locker.lock().unwrap();
    MutexGuard::lease(&guard).verify().unwrap();
    lose_and_regain(&server);
    assert_lost(&MutexGuard::lease(&guard).verify().unwrap_err());
}

#[test]
fn those_that_share_find_that_another_had_the_lock_meanwhile() {
    let server = RedisServer::start();
    let locker = Locker::builder(&server.url())
        .ttl(PATIENCE)
        .build()
        .unwrap();
    let permits = locker.semaphore("n", 2).unwrap();
    for shares in 0..4 {
        let (mode, guard) = match shares % 2 {
            0 => ("r", locker.read("n").unwrap()),
            _ => ("1/2", permits.acquire().unwrap()),
        };
        guard.verify().unwrap();
        lose_and_share(&server, mode);
        match shares / 2 {
            0 => assert_lost(&guard.verify().unwrap_err()),
            _ => assert_lost(&guard.unlock().unwrap_err()),
        }
        server.query::<()>(&["FLUSHALL"]);
    }
}

/// What the only one that shares the lock has is lost, and comes back to it after another has stored 7.
fn lose_and_share(server: &RedisServer, mode: &str) {
    let holders = "{crosslock:n}:holders";
    let members: Vec<String> = server.query(&["ZRANGE", holders, "0", "-1"]);
    let owner = members
        .iter()
        .find_map(|one| one.strip_prefix("1 "))
        .unwrap();
    server.query::<()>(&["DEL", LOCK, holders]);
    store_another(server);
    let digest = digest(ACQUIRE);
    let words = [
        &["EVALSHA", &digest, "6"],
        &KEYS[..6],
        &[owner, "30000", mode],
    ];
    server.query::<redis::Value>(&words.concat());
    assert!(
        server
            .query::<Option<f64>>(&["ZSCORE", holders, &format!("1 {owner}")])
            .is_some()
    );
}

#[test]
fn renewal_finds_that_another_had_the_lock_meanwhile() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).renew_every(Duration::from_millis(500));
    let locker = builder.ttl(PATIENCE).build().unwrap();
    for names in [&["n"][..], &["n", "m"]] {
        let guard = locker.lock_all(names).unwrap();
        lose_and_regain(&server);
        let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
        assert_eq!(lost.reason, crosslock::LostReason::NotOwner);
        drop(guard);
        server.query::<()>(&["DEL", LOCK]);
    }
}

#[test]
fn value_for_the_next_thread_is_not_stored_over_a_later_one() {
    let server = RedisServer::start();
    let counter = generous(&server.url());
    let next = in_turn(&counter, 7, |guard| {
        lose_and_regain(&server);
        assert_lost(&MutexGuard::unlock(guard).unwrap_err());
    });
    assert_eq!(*next.1, 7);
}

/// The first answer is lost, and from the second it can't be told whether the first copy of the release has stored the
/// value.
#[test]
fn release_that_is_unclear_is_not_ok() {
    let (server, proxy) = server_with_proxy();
    let counter = generous(&proxy.url());
    for forgets in [true, false] {
        let mut guard = counter.lock().unwrap();
        *guard = 1;
        let lost = proxy.lost_replies();
        if forgets {
            server.query::<()>(&["DEL", LOCK, "{crosslock:n}:fence"]);
            store_another(&server);
        }
        proxy.lose_next_reply(&digest(RELEASE), false);
        let error = thread::scope(|scope| {
            let release = scope.spawn(|| MutexGuard::unlock(guard));
            wait_until("a lost reply", PATIENCE, || proxy.lost_replies() > lost);
            if !forgets {
                store_another(&server);
            }
            release.join().unwrap().unwrap_err()
        });
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert_eq!(server.get(VALUE).as_deref(), Some("7"));
    }
}
