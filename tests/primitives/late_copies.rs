//! A lock was lost, another held it and stored a value, and a late copy of the first owner's request takes it for that
//! owner again.

use crosslock::{Error, Mutex, MutexGuard};

use super::*;
use support::RedisServer;
use support::scripts::{ACQUIRE, digest};

const KEYS: &[&str] = &[
    LOCK,
    FENCE,
    "{crosslock:n}:queue",
    "{crosslock:n}:waiters",
    "{crosslock:n}:read_queue",
    "{crosslock:n}:holders",
];

/// A counter whose threads hand the lease over for as long as the tests take.
fn generous(url: &str) -> Mutex<u64> {
    let builder = Locker::builder(url).hand_over(PATIENCE).ttl(PATIENCE);
    builder.build().unwrap().mutex(NAME, 0).unwrap()
}

/// The lock of the owner that has it is lost, and comes back to it after another has stored 7.
fn lose_and_regain(server: &RedisServer) {
    let owner = server.get(LOCK).expect("an owner");
    server.query::<()>(&["DEL", LOCK]);
    store_another(server);
    let digest = digest(ACQUIRE);
    let words = [&["EVALSHA", &digest, "6"], KEYS, &[&owner, "30000", "x"]];
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
