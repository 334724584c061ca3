//! What each operation costs, counted by the server, and which of them give back what they can't do.

use std::thread;

use crosslock::{Error, Locker, MutexGuard, RwLockReadGuard};

use super::*;
use support::{Proxy, RedisServer};

/// Asserts how many scripts the server runs for `operation`, when it knows them; nothing else is sent to it.
#[track_caller]
fn assert_scripts(scripts: u64, operation: impl Fn(&Locker)) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::open(&proxy.url()).unwrap();
    operation(&lock);
    let before = proxy.requests();
    server.reset_stats();
    operation(&lock);
    assert_eq!(server.command_calls("evalsha"), scripts);
    assert_eq!(proxy.requests() - before, scripts);
}

#[test]
fn changed_value_is_two_scripts() {
    assert_scripts(2, |lock| {
        let mut guard = lock.mutex(NAME, 0u64).unwrap().lock().unwrap();
        *guard += 1;
        MutexGuard::unlock(guard).unwrap();
    });
}

#[test]
fn reading_is_two_scripts() {
    assert_scripts(2, |lock| lock.read(NAME).unwrap().unlock().unwrap());
    assert_scripts(2, |lock| {
        let config = lock.rwlock(NAME, String::new()).unwrap();
        RwLockReadGuard::unlock(config.read().unwrap()).unwrap();
    });
}

#[test]
fn permit_is_two_scripts() {
    assert_scripts(2, |lock| {
        let permit = lock.semaphore(NAME, 3).unwrap().acquire().unwrap();
        permit.unlock().unwrap();
    });
}

#[test]
fn downgrade_is_one_script_more() {
    assert_scripts(3, |lock| {
        let writing = lock.write(NAME).unwrap();
        writing.downgrade().unwrap().unlock().unwrap();
    });
}

#[test]
fn several_names_are_two_scripts_however_many_they_are() {
    let names: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    for count in [2, 5, 20] {
        assert_scripts(2, |lock| {
            lock.lock_all(&names[..count]).unwrap().unlock().unwrap();
        });
    }
}

#[test]
fn several_names_are_renewed_by_one_script() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).renew_every(millis(100));
    let lock = builder.build().unwrap();
    let hold = |requests| {
        let guard = lock.lock_all(&NAMES).unwrap();
        let before = proxy.requests();
        wait_until("renewals", PATIENCE, || {
            proxy.requests() >= before + requests
        });
        guard.unlock().unwrap();
    };
    // Makes the scripts known: the first renewal is asked for twice.
    hold(3);
    server.reset_stats();
    let before = proxy.requests();
    hold(5);
    let scripts = server.command_calls("evalsha");
    assert_eq!(proxy.requests() - before, scripts);
    // All but the first and the last are renewals: of the lock and its counter, for each name.
    let expiries = server.command_calls("pexpire");
    assert_eq!(expiries, (scripts - 2) * 2 * NAMES.len() as u64);
}

#[test]
fn value_that_was_waited_for_is_read_by_one_command_more_and_is_what_the_release_wrote() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let mut first = open(&server).mutex(NAME, 0u64).unwrap().lock().unwrap();
    let second = Locker::open(&proxy.url()).unwrap().mutex(NAME, 0).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| second.lock().unwrap());
        wait_for_queue(&server, 1);
        let before = proxy.requests();
        *first = 5;
        MutexGuard::unlock(first).unwrap();
        let guard = waiter.join().unwrap();
        assert_eq!(*guard, 5);
        assert_eq!(proxy.requests() - before, 1);
    });
    assert_nothing_left(&server);
    assert_eq!(server.get(VALUE).as_deref(), Some("5"));
    assert_eq!(server.pttl(VALUE), -1);
}

#[test]
fn permit_that_is_downgraded_is_given_back() {
    let server = RedisServer::start();
    let semaphore = open(&server).semaphore(NAME, 1).unwrap();
    let error = semaphore.acquire().unwrap().downgrade().unwrap_err();
    assert_eq!(semaphore.available_permits().unwrap(), 1, "{error}");
    assert!(!matches!(error, Error::Lost { .. }), "{error}");
}
