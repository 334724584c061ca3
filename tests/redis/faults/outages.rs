//! Servers that die and come back.

use std::thread;
use std::time::Instant;

use crosslock::{Error, Locker, LostReason};

use super::*;
use support::{Proxy, RedisServer, wait_until};

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

/// A guard whose server has lost its memory, and a locker without renewals in the way.
fn forgotten(server: &RedisServer, forget: fn(&RedisServer)) -> (Locker, crosslock::LockGuard) {
    let locker = Locker::builder(&server.url())
        .ttl(millis(60_000))
        .build()
        .unwrap();
    let guard = held(&locker);
    forget(server);
    (locker, guard)
}

fn restart(server: &RedisServer) {
    server.restart();
}

fn flush(server: &RedisServer) {
    server.query::<()>(&["FLUSHALL"]);
}

/// The next holder's token is larger, although the counter is lost, and the first takes nothing from it.
fn assert_next_is_undisturbed(server: &RedisServer, locker: &Locker, guard: crosslock::LockGuard) {
    let next = held(&open(&server.url()));
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(!next.was_abandoned());
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    next.verify().unwrap();
    assert!(locker.try_lock(NAME).unwrap().is_none());
    next.unlock().unwrap();
    assert_released(server);
}

#[test]
fn guard_finds_out_by_asking_that_its_server_has_forgotten() {
    let server = RedisServer::start();
    for forget in [restart, flush] {
        let (locker, guard) = forgotten(&server, forget);
        let error = guard.verify().unwrap_err();
        assert!(
            matches!(
                error,
                Error::Lost {
                    reason: LostReason::NotOwner,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(
            guard.lost().try_recv().unwrap().reason,
            LostReason::NotOwner
        );
        assert!(!guard.is_held());
        assert_next_is_undisturbed(&server, &locker, guard);
    }
    assert_no_clients(&server);
}

#[test]
fn next_renewal_finds_that_the_server_has_forgotten() {
    let server = RedisServer::start();
    for forget in [restart, flush] {
        let locker = Locker::builder(&server.url())
            .ttl(millis(60_000))
            .renew_every(millis(100))
            .build()
            .unwrap();
        let guard = held(&locker);
        forget(&server);
        let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
        assert_eq!(
            (lost.name.as_str(), lost.reason),
            (NAME, LostReason::NotOwner)
        );
        assert_eq!(server.get(LOCK), None, "it isn't taken again");
        assert_next_is_undisturbed(&server, &locker, guard);
    }
}

#[test]
fn unlock_says_lost_when_the_server_was_flushed() {
    let server = RedisServer::start();
    let (_locker, guard) = forgotten(&server, flush);
    let error = guard.unlock().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert!(server.keys().is_empty(), "{:?}", server.keys());
}

#[test]
fn unlock_says_lost_when_the_server_was_restarted_and_has_forgotten() {
    let server = RedisServer::start();
    let (_locker, guard) = forgotten(&server, restart);
    let error = guard.unlock().expect_err("nobody has kept the lock");
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert!(server.keys().is_empty(), "{:?}", server.keys());
}

#[test]
fn unlock_says_lost_when_another_has_the_lock_since_a_restart() {
    let server = RedisServer::start();
    let (_locker, guard) = forgotten(&server, restart);
    let next = held(&open(&server.url()));
    let error = guard.unlock();
    next.verify().unwrap();
    // Both may have worked at the same time, so this is no clean release.
    assert!(matches!(error, Err(Error::Lost { .. })), "{error:?}");
}

// Down

#[test]
fn lock_waits_for_a_server_to_come_back() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = Locker::builder(&proxy.url())
        .outage_timeout(PATIENCE)
        .build()
        .unwrap();
    server.kill();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.lock(NAME));
        let accepted = proxy.accepted();
        wait_until("some attempts", PATIENCE, || {
            proxy.accepted() > accepted + 2
        });
        assert!(!waiter.is_finished());
        server.restart();
        waiter.join().unwrap().unwrap().unlock().unwrap();
    });
    assert_released(&server);
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn waiter_for_a_taken_lock_rides_over_a_restart() {
    for remembers in [false, true] {
        let builder = RedisServer::builder();
        let server = if remembers {
            builder.append_only().start()
        } else {
            builder.start()
        };
        let proxy = Proxy::start(server.addr());
        server.query::<()>(&["SET", LOCK, "theirs", "PX", "60000"]);
        let locker = open(&proxy.url());
        thread::scope(|scope| {
            let waiter = scope.spawn(|| locker.lock(NAME));
            let requests = proxy.requests();
            wait_until("some attempts", PATIENCE, || {
                proxy.requests() > requests + 2
            });
            server.restart();
            if remembers {
                let requests = proxy.requests();
                wait_until("more attempts", PATIENCE, || {
                    proxy.requests() > requests + 2
                });
                assert!(!waiter.is_finished());
                server.query::<()>(&["DEL", LOCK]);
            }
            waiter.join().unwrap().unwrap().unlock().unwrap();
        });
        assert_released(&server);
    }
}

#[test]
fn lock_gives_up_when_the_server_is_away_for_too_long() {
    let server = RedisServer::start();
    let patience = millis(300);
    let locker = Locker::builder(&server.url())
        .outage_timeout(patience)
        .build()
        .unwrap();
    server.kill();
    for _ in 0..2 {
        let start = Instant::now();
        let error = within(patience, || locker.lock(NAME)).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(start.elapsed() >= patience);
        let text = error.to_string();
        assert!(
            text.contains("\"n\"") && text.contains(&server.addr().to_string()),
            "{text}"
        );
    }
    let error = within(millis(50), || locker.try_lock(NAME)).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    server.restart();
    assert_works(&locker);
}

#[test]
fn lock_does_not_wait_for_a_server_when_told_so() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url());
    let locker = builder.outage_timeout(millis(0)).build().unwrap();
    server.kill();
    let error = within(millis(50), || locker.lock(NAME)).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[test]
fn timed_wait_keeps_its_bound_while_the_server_is_down() {
    let server = RedisServer::start();
    let locker = open(&server.url());
    server.kill();
    let timeout = millis(200);
    let start = Instant::now();
    let error = within(timeout + millis(100), || locker.try_lock_for(NAME, timeout)).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(start.elapsed() >= timeout);
    let until = Instant::now() + timeout;
    within(timeout + millis(100), || locker.try_lock_until(NAME, until)).unwrap_err();
}

#[test]
fn timed_wait_for_a_taken_lock_does_not_wait_for_a_server_that_is_gone_when_told_so() {
    let server = RedisServer::start();
    server.query::<()>(&["SET", LOCK, "theirs", "PX", "60000"]);
    let builder = Locker::builder(&server.url());
    let locker = builder.outage_timeout(millis(0)).build().unwrap();
    let start = Instant::now();
    let outcome = thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.try_lock_for(NAME, 5 * PATIENCE));
        // It was told that the lock is taken, and asks again.
        wait_for_line(&server, 1);
        server.kill();
        waiter.join().unwrap()
    });
    assert!(
        matches!(outcome, Err(Error::Unavailable { .. })),
        "{outcome:?}"
    );
    assert!(start.elapsed() < 2 * PATIENCE);
}

#[test]
fn opening_fails_at_once_while_the_server_is_down() {
    let server = RedisServer::start();
    server.kill();
    let error = within(millis(100), || Locker::open(&server.url())).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(
        error.to_string().contains(&server.addr().to_string()),
        "{error}"
    );
}

#[test]
fn guard_ends_in_time_while_the_server_is_down() {
    let server = RedisServer::start();
    let locker = open(&server.url());
    let (one, two) = (held(&locker), locker.lock("m").unwrap());
    server.kill();
    let error = within(millis(100), || one.verify()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(one.is_held(), "nothing speaks against it yet");
    let error = within(RELEASE, || one.unlock()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    within(RELEASE, || drop(two));
}

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

fn kill_clients(server: &RedisServer) {
    server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
    wait_until("the clients to go", PATIENCE, || {
        server.connected_clients() == 0
    });
}

#[test]
fn killed_connections_are_replaced_without_an_error() {
    let server = RedisServer::start();
    let (locker, other) = (open(&server.url()), open(&server.url()));
    // Several idle connections, which all die.
    let names = ["a", "b", "c"];
    thread::scope(|scope| {
        for name in names {
            let locker = &locker;
            scope.spawn(move || drop(locker.lock(name).unwrap()));
        }
    });
    for _ in 0..3 {
        kill_clients(&server);
        let guard = held(&locker);
        kill_clients(&server);
        guard.verify().unwrap();
        kill_clients(&server);
        assert!(other.try_lock(NAME).unwrap().is_none());
        kill_clients(&server);
        guard.unlock().unwrap();
        assert_released(&server);
    }
    drop((locker, other));
    assert_no_clients(&server);
}

#[test]
fn renewal_replaces_a_killed_connection() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(3_000));
    let locker = builder.renew_every(millis(100)).build().unwrap();
    let guard = held(&locker);
    for _ in 0..3 {
        server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
        wait_for_renewal(&guard);
    }
    guard.unlock().unwrap();
    assert_released(&server);
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
