//! Servers that hold something else, have no room, or answer what no script of ours does.

use std::thread;

use crosslock::{Error, Locker};

use super::*;
use support::{Proxy, RedisServer, wait_until};

#[test]
fn lock_or_counter_of_another_kind_is_a_conflict_and_stays_as_it_is() {
    let server = RedisServer::start();
    for (key, words) in [
        (LOCK, &["HSET", LOCK, "field", "value"][..]),
        (FENCE, &["HSET", FENCE, "field", "value"]),
        (FENCE, &["SET", FENCE, "text"]),
    ] {
        server.query::<()>(words);
        let before: Vec<u8> = server.query(&["DUMP", key]);
        let locker = open(&server.url());
        for outcome in [
            locker.lock(NAME).map(Some),
            locker.try_lock_for(NAME, LONG),
            locker.try_lock(NAME),
        ] {
            let error = outcome.unwrap_err();
            assert!(error.to_string().contains(&format!("`{key}`")), "{error}");
            assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
        }
        assert_eq!(server.keys(), [key], "nothing was added");
        assert_eq!(server.query::<Vec<u8>>(&["DUMP", key]), before, "{key}");
        assert_eq!(server.pttl(key), -1, "{key}");
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn full_server_renews_releases_and_hands_on_what_is_held() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).renew_every(millis(100));
    let (locker, other) = (open(&server.url()), builder.build().unwrap());
    let guard = held(&locker);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock(NAME).unwrap());
        // Until its next heartbeat, seconds away, it asks for nothing that could be refused.
        wait_for_inbox(&server);
        server.query::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        guard.unlock().unwrap();
        let next = waiter.join().unwrap();
        assert!(!next.was_abandoned());
        wait_for_renewal(&next);
        next.verify().unwrap();
        let token = next.fencing_token();
        next.unlock().unwrap();
        assert_eq!(server.counter(FENCE), Some(token + 1));
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

#[test]
fn answers_of_no_script_of_ours_are_errors_and_what_they_hide_is_given_back() {
    let server = RedisServer::start();
    load_scripts(&server);
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).ttl(millis(600_000));
    let locker = builder.build().unwrap();
    for answer in [
        "$-1\r\n",
        "+OK\r\n",
        "*0\r\n",
        ":-7\r\n",
        "$3\r\nabc\r\n",
        "what?\r\n",
    ] {
        proxy.replace_next_reply(&digest(ACQUIRE), answer);
        let error = locker.lock(NAME).unwrap_err();
        assert!(matches!(error, Error::Engine { .. }), "{answer:?}: {error}");
        wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
        assert_released(&server);
    }
    proxy.replace_next_reply(&digest(ACQUIRE), "-ODD ball\r\n");
    let error = locker.lock(NAME).unwrap_err();
    assert!(matches!(error, Error::Engine { .. }), "{error}");
}
