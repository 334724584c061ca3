//! Servers that die and come back.

use crosslock::{Error, Locker, LostReason};

use super::*;
use support::{RedisServer, wait_until};

// Restarts

#[test]
fn guard_survives_the_restart_of_a_server_that_remembers() {
    let server = RedisServer::builder().append_only().start();
    let builder = Locker::builder(&server.url()).ttl(millis(30_000));
    let locker = builder.renew_every(millis(200)).build().unwrap();
    let guard = held(&locker);
    server.restart();
    guard.verify().unwrap();
    assert!(open(&server.url()).try_lock(NAME).unwrap().is_none());
    wait_for_renewal(&guard);
    assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
    guard.unlock().unwrap();
    assert_released(&server);
    drop(locker);
    assert_no_clients(&server);
}

/// How a server loses its memory.
const FORGET: [fn(&RedisServer); 2] = [RedisServer::restart, |server| {
    server.query::<()>(&["FLUSHALL"]);
}];

/// The next holder's token is larger, although the counter is lost, and the first takes nothing from it.
fn assert_next_is_undisturbed(server: &RedisServer, locker: &Locker, guard: LockGuard) {
    let next = held(&open(&server.url()));
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(!next.was_abandoned());
    // Both may have worked at the same time, so this is no clean release.
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    next.verify().unwrap();
    assert!(locker.try_lock(NAME).unwrap().is_none());
    next.unlock().unwrap();
    assert_released(server);
}

#[test]
fn guard_finds_out_that_its_server_has_forgotten() {
    let server = RedisServer::start();
    for forget in FORGET {
        for way in ["verify", "renewal", "unlock", "unlock behind the next"] {
            let builder = Locker::builder(&server.url()).ttl(millis(60_000));
            let builder = match way {
                "renewal" => builder.renew_every(millis(100)),
                _ => builder,
            };
            let locker = builder.build().unwrap();
            let guard = held(&locker);
            forget(&server);
            if way == "unlock" {
                let error = guard.unlock().expect_err("nobody has kept the lock");
                assert!(matches!(error, Error::Lost { .. }), "{error}");
                assert_eq!(server.keys(), [""; 0]);
                continue;
            }
            if way == "verify" {
                let error = guard.verify().unwrap_err();
                assert!(matches!(error, Error::Lost { .. }), "{error}");
            }
            if way != "unlock behind the next" {
                let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
                assert_eq!(lost.name, NAME);
                assert_eq!(lost.reason, LostReason::NotOwner);
                assert!(!guard.is_held());
                assert_eq!(server.get(LOCK), None, "it isn't taken again");
            }
            assert_next_is_undisturbed(&server, &locker, guard);
        }
    }
    assert_no_clients(&server);
}

// Down

// Scripts and connections that a server throws away

#[test]
fn locks_go_on_when_the_server_forgets_its_scripts() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(3_000));
    let locker = builder.renew_every(millis(100)).build().unwrap();
    for _ in 0..3 {
        server.query::<()>(&["SCRIPT", "FLUSH"]);
        let guard = held(&locker);
        server.query::<()>(&["SCRIPT", "FLUSH"]);
        wait_for_renewal(&guard);
        server.query::<()>(&["SCRIPT", "FLUSH"]);
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert_released(&server);
    }
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn server_that_accepts_nobody_else_is_told_as_it_is() {
    let server = RedisServer::builder().config("maxclients", "1").start();
    let error = {
        let _only = server.connection();
        Locker::open(&server.url()).unwrap_err()
    };
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(shown(&error).contains("max number of clients"), "{error}");
    wait_until("a free place", PATIENCE, || {
        Locker::open(&server.url()).is_ok()
    });
}
