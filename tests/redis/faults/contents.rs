//! Servers that hold something else, have no room, or may not write.

use std::thread;

use crosslock::{Error, Locker, LostReason};

use super::speaker::Speaker;
use super::*;
use support::{Proxy, RedisServer, wait_until};

// Keys of others

/// What each call says about a key that is no lock: a conflict which names it.
#[track_caller]
fn assert_conflict(server: &RedisServer, key: &str) {
    let locker = open(&server.url());
    for outcome in [
        locker.lock(NAME).map(Some),
        locker.try_lock(NAME),
        locker.try_lock_for(NAME, LONG),
    ] {
        let error = outcome.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("`{key}`")), "{key}: {text}");
        match error {
            Error::Conflict {
                name, key: named, ..
            } => {
                assert_eq!((name.as_str(), named.as_str()), (NAME, key));
            }
            other => panic!("{other}"),
        }
    }
    drop(locker);
    assert_eq!(server.keys(), [key], "nothing was added");
    assert_no_clients(server);
}

#[test]
fn lock_key_of_another_type_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start();
    server.query::<()>(&["HSET", LOCK, "field", "value"]);
    assert_conflict(&server, LOCK);
    assert_eq!(server.query::<String>(&["HGET", LOCK, "field"]), "value");
    assert_eq!(server.pttl(LOCK), -1);
}

#[test]
fn counter_of_another_type_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start();
    server.query::<()>(&["HSET", FENCE, "field", "value"]);
    assert_conflict(&server, FENCE);
    assert_eq!(server.query::<String>(&["HGET", FENCE, "field"]), "value");
    assert_eq!(server.pttl(FENCE), -1);
}

#[test]
fn counter_with_a_text_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start();
    server.query::<()>(&["SET", FENCE, "text"]);
    assert_conflict(&server, FENCE);
    assert_eq!(server.get(FENCE).as_deref(), Some("text"));
    assert_eq!(server.pttl(FENCE), -1);
}

/// Lets `locker` wait for another lock, so that from now on it enters a line with its first question.
fn open_inbox(server: &RedisServer, locker: &Locker) {
    let other = open(&server.url());
    let _guard = other.lock("other").unwrap();
    assert!(locker.try_lock_for("other", millis(500)).unwrap().is_none());
}

#[test]
fn line_of_another_type_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start();
    for (key, taken) in [(QUEUE, false), (QUEUE, true), (WAITERS, true)] {
        server.query::<()>(&["SET", key, "text"]);
        if taken {
            server.query::<()>(&["SET", LOCK, "theirs", "PX", "60000"]);
        }
        let locker = open(&server.url());
        open_inbox(&server, &locker);
        let before = server.keys();
        for outcome in [locker.lock(NAME).map(Some), locker.try_lock_for(NAME, LONG)] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Conflict { .. }), "{key}: {error}");
        }
        assert_eq!(server.keys(), before, "nothing was added, taken: {taken}");
        assert_eq!(server.get(key).as_deref(), Some("text"));
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn line_that_is_replaced_while_held_hinders_neither_renewal_nor_release() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(3_000));
    let locker = builder.renew_every(millis(100)).build().unwrap();
    for key in [QUEUE, WAITERS] {
        let guard = held(&locker);
        server.query::<()>(&["SET", key, "text"]);
        wait_for_renewal(&guard);
        let unlocked = guard.unlock();
        unlocked.unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(server.get(LOCK), None);
        server.query::<()>(&["DEL", key]);
        assert!(!held(&locker).was_abandoned(), "{key}");
    }
}

#[test]
fn held_lock_that_is_replaced_by_another_type_is_lost() {
    let server = RedisServer::start();
    for ask in [true, false] {
        let builder = Locker::builder(&server.url()).ttl(millis(60_000));
        let locker = if ask {
            builder
        } else {
            builder.renew_every(millis(50))
        };
        let locker = locker.build().unwrap();
        let guard = held(&locker);
        server.query::<()>(&["DEL", LOCK]);
        server.query::<()>(&["HSET", LOCK, "field", "value"]);
        if ask {
            let error = guard.verify().unwrap_err();
            assert!(matches!(error, Error::Lost { .. }), "{error}");
        }
        let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
        assert_eq!(lost.reason, LostReason::NotOwner);
        assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
        assert_eq!(server.query::<String>(&["HGET", LOCK, "field"]), "value");
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn unlock_says_lost_when_the_lock_was_replaced_by_another_type() {
    let server = RedisServer::start();
    let guard = held(&open(&server.url()));
    server.query::<()>(&["DEL", LOCK]);
    server.query::<()>(&["HSET", LOCK, "field", "value"]);
    let error = guard.unlock().unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert_eq!(server.query::<String>(&["HGET", LOCK, "field"]), "value");
}

#[test]
fn counter_that_is_replaced_while_held_hinders_neither_renewal_nor_release() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(3_000));
    let locker = builder.renew_every(millis(100)).build().unwrap();
    let guard = held(&locker);
    server.query::<()>(&["DEL", FENCE]);
    server.query::<()>(&["HSET", FENCE, "field", "value"]);
    wait_for_renewal(&guard);
    guard.unlock().unwrap();
    assert_eq!(server.get(LOCK), None);
}

#[test]
fn lock_without_a_ttl_excludes_us_until_it_is_deleted() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    server.query::<()>(&["SET", LOCK, "theirs"]);
    let locker = open(&proxy.url());
    assert!(locker.try_lock(NAME).unwrap().is_none());
    assert!(locker.try_lock_for(NAME, millis(500)).unwrap().is_none());
    assert_eq!(server.keys(), [LOCK]);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.lock(NAME).unwrap());
        let requests = proxy.requests();
        wait_until("some attempts", PATIENCE, || {
            proxy.requests() > requests + 2
        });
        assert!(!waiter.is_finished());
        assert_eq!(server.get(LOCK).as_deref(), Some("theirs"));
        assert_eq!(server.pttl(LOCK), -1);
        server.query::<()>(&["DEL", LOCK]);
        waiter.join().unwrap().unlock().unwrap();
    });
    assert_released(&server);
}

#[test]
fn holder_of_a_deleted_lock_takes_nothing_from_the_next() {
    let server = RedisServer::start();
    let (locker, other) = (open(&server.url()), open(&server.url()));
    let guard = held(&locker);
    server.query::<()>(&["DEL", LOCK]);
    let next = held(&other);
    assert!(next.was_abandoned(), "the one before never released");
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    next.verify().unwrap();
    next.unlock().unwrap();
    assert_released(&server);
}

// No room

#[test]
fn full_server_refuses_new_locks_and_lets_held_ones_go_on() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(5_000));
    let locker = builder.renew_every(millis(100)).build().unwrap();
    let guard = held(&locker);
    let token = guard.fencing_token();
    server.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = locker.try_lock("new").unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(shown(&error).contains("OOM"), "{error}");
    wait_for_renewal(&guard);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_released(&server);
    assert_eq!(server.counter(FENCE), Some(token + 1));
    assert_eq!(server.keys(), [FENCE]);
    server.query::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(held(&locker).fencing_token() > token);
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn full_server_hands_a_lock_on_to_who_waits_for_it() {
    let server = RedisServer::start();
    let (locker, other) = (open(&server.url()), open(&server.url()));
    let guard = held(&locker);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock(NAME).unwrap());
        // Until its next heartbeat, seconds away, it asks for nothing that could be refused.
        wait_for_inbox(&server);
        server.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        guard.unlock().unwrap();
        let next = waiter.join().unwrap();
        assert!(!next.was_abandoned());
        next.verify().unwrap();
        next.unlock().unwrap();
    });
    assert_released(&server);
}

#[cfg(feature = "value")]
#[test]
fn value_of_another_program_that_is_too_long_is_not_read() {
    let server = RedisServer::start();
    // The server takes its time for so long a value.
    let locker = Locker::builder(&server.url()).io_timeout(PATIENCE);
    let locker = locker.build().unwrap();
    let text = locker.mutex(NAME, String::new()).unwrap();
    let end = (128 << 20).to_string();
    server.query::<()>(&["SETRANGE", "{crosslock:n}:value", &end, "x"]);
    for error in [text.peek().unwrap_err(), text.lock().unwrap_err()] {
        assert!(shown(&error).contains("128 MiB"), "{error}");
    }
    wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
    text.remove().unwrap();
    assert_eq!(*text.lock().unwrap(), "");
}

// Servers that may not write

#[test]
fn replica_refuses_to_lock() {
    let primary = RedisServer::start();
    let builder = RedisServer::builder().replica_of(primary.port());
    // Otherwise it is told when it is opened.
    let replica = builder.without_hello().start();
    wait_until("the replica to follow", PATIENCE, || {
        replica.info("master_link_status").as_deref() == Some("up")
    });
    let builder = Locker::builder(&replica.url()).outage_timeout(millis(100));
    let locker = builder.build().unwrap();
    for outcome in [
        within(millis(200), || locker.lock(NAME)).map(Some),
        within(millis(100), || locker.try_lock(NAME)),
        within(millis(200), || locker.try_lock_for(NAME, millis(100))),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(shown(&error).contains("READONLY"), "{error}");
    }
    assert!(primary.keys().is_empty() && replica.keys().is_empty());
    drop(locker);
    assert_no_clients(&replica);
}

#[test]
fn guard_of_a_server_that_is_demoted_ends_in_time() {
    let (other, server) = (RedisServer::start(), RedisServer::start());
    let locker = Locker::builder(&server.url())
        .ttl(millis(5_000))
        .build()
        .unwrap();
    let guard = held(&locker);
    let port = other.port().to_string();
    server.query::<()>(&["REPLICAOF", "127.0.0.1", &port]);
    let error = within(RELEASE, || guard.unlock()).unwrap_err();
    // Before or after it has taken over the data of the other.
    assert!(
        matches!(error, Error::Unavailable { .. } | Error::Lost { .. }),
        "{error}"
    );
}

// Answers that none of our scripts gives

#[test]
fn answers_of_no_script_of_ours_are_errors() {
    for answer in [
        "$-1\r\n",
        "+OK\r\n",
        "*0\r\n",
        ":-7\r\n",
        "$3\r\nabc\r\n",
        "-ODD ball\r\n",
    ] {
        let speaker = Speaker::start(&["+PONG\r\n", "*0\r\n", answer, ":0\r\n"]);
        let locker = open(&speaker.url());
        let error = within(millis(100), || locker.lock(NAME)).unwrap_err();
        assert!(matches!(error, Error::Engine { .. }), "{answer:?}: {error}");
    }
}

#[test]
fn owner_is_in_no_error() {
    let server = RedisServer::start();
    let guard = held(&open(&server.url()));
    let owner = server.get(LOCK).unwrap();
    let uuid = owner.split('/').next().unwrap().to_owned();
    assert!(uuid.len() > 30);
    assert!(!format!("{guard:?}").contains(&uuid));
    server.query::<()>(&["DEL", LOCK]);
    let error = guard.unlock().unwrap_err();
    assert!(!shown(&error).contains(&uuid));
}
