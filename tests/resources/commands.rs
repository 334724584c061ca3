//! What calls cost in commands.

use crosslock::Locker;

use super::*;
use support::{Proxy, RedisServer};

/// A locker, whose requests are counted on their way.
fn counted() -> (RedisServer, Proxy, Locker) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::open(&proxy.url()).unwrap();
    (server, proxy, lock)
}

#[test]
fn cycle_is_two_commands_after_the_first() {
    const CYCLES: u64 = 50;
    let (server, proxy, lock) = counted();
    let before = proxy.requests();
    lock.lock("a").unwrap().unlock().unwrap();
    // The first one teaches the server both scripts.
    assert_eq!(proxy.requests() - before, 4);
    assert_eq!(server.failed_calls("evalsha"), 2);
    assert_eq!(server.command_calls("eval"), 2);
    server.reset_stats();
    let before = proxy.requests();
    for cycle in 0..CYCLES {
        let guard = lock.lock("a").unwrap();
        if cycle % 2 == 0 {
            guard.unlock().unwrap();
        } else {
            drop(guard);
        }
    }
    assert_eq!(proxy.requests() - before, 2 * CYCLES);
    assert_eq!(server.command_calls("evalsha"), 2 * CYCLES);
    assert_eq!(server.failed_calls("evalsha"), 0);
    for other in [
        "eval",
        "ping",
        "script|load",
        "hello",
        "auth",
        "select",
        "subscribe",
        "publish",
    ] {
        assert_eq!(server.command_calls(other), 0, "{other}");
    }
    assert_eq!(proxy.accepted(), 1, "one connection serves all");
}

#[test]
fn attempt_on_a_taken_lock_is_one_command_of_another_locker_and_local_questions_are_none() {
    let (_server, proxy, lock) = counted();
    let other = Locker::open(&proxy.url()).unwrap();
    other.lock("other").unwrap().unlock().unwrap();
    let guard = lock.lock("a").unwrap();
    // The server knows the script from now on.
    guard.verify().unwrap();
    let before = proxy.requests();
    for lock in [&lock, &lock.clone()] {
        assert!(lock.try_lock("a").unwrap().is_none());
        let timeout = Duration::from_millis(20);
        assert!(lock.try_lock_for("a", timeout).unwrap().is_none());
    }
    assert!(guard.is_held() && guard.check().is_ok() && guard.lost().is_empty());
    assert!(guard.remaining() > Duration::ZERO && !guard.was_abandoned());
    assert_eq!(proxy.requests(), before);
    // The guard's renewal is seconds away.
    for _ in 0..10 {
        assert!(other.try_lock("a").unwrap().is_none());
    }
    guard.verify().unwrap();
    assert_eq!(proxy.requests() - before, 11);
}
