//! Locks, values, readers, permits and several names on a server: what they cost.

#![cfg(all(feature = "redis", feature = "value"))]

use std::thread;
use std::time::Duration;

use crosslock::{Locker, MutexGuard, RwLockReadGuard};
use support::{Proxy, RedisServer, wait_until};

/// The lock of all tests.
const NAME: &str = "n";

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nothing else is sent to a server that knows them.
#[test]
fn each_operation_is_so_many_scripts() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::open(&proxy.url()).unwrap();
    let names: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let operations: [(&str, u64, &dyn Fn()); 8] = [
        ("a lock", 2, &|| lock.lock(NAME).unwrap().unlock().unwrap()),
        ("a value is changed", 2, &|| {
            let mut guard = lock.mutex(NAME, 0u64).unwrap().lock().unwrap();
            *guard += 1;
            MutexGuard::unlock(guard).unwrap();
        }),
        ("reading", 2, &|| lock.read(NAME).unwrap().unlock().unwrap()),
        ("a value is read", 2, &|| {
            let config = lock.rwlock(NAME, 0u64).unwrap();
            RwLockReadGuard::unlock(config.read().unwrap()).unwrap();
        }),
        ("a permit", 2, &|| {
            let permit = lock.semaphore(NAME, 3).unwrap().acquire().unwrap();
            permit.unlock().unwrap();
        }),
        ("a downgrade", 3, &|| {
            let writing = lock.write(NAME).unwrap();
            writing.downgrade().unwrap().unlock().unwrap();
        }),
        ("two names", 2, &|| {
            drop(lock.lock_all(&names[..2]).unwrap())
        }),
        ("many names", 2, &|| drop(lock.lock_all(&names).unwrap())),
    ];
    for (what, scripts, operation) in operations {
        operation();
        let before = proxy.requests();
        server.query::<()>(&["CONFIG", "RESETSTAT"]);
        operation();
        assert_eq!(server.command_calls("evalsha"), scripts, "{what}");
        assert_eq!(proxy.requests() - before, scripts, "{what}");
    }
}

#[test]
fn attempt_on_a_taken_lock_is_one_command_of_another_locker_and_local_questions_are_none() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let [lock, other] = [(); 2].map(|()| Locker::open(&proxy.url()).unwrap());
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

#[test]
fn value_that_was_waited_for_is_read_by_one_command_more_and_is_what_the_release_wrote() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let count = |url: &str| Locker::open(url).unwrap().mutex(NAME, 0u64).unwrap();
    let (first, second) = (count(&server.url()), count(&proxy.url()));
    let mut first = first.lock().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| second.lock().unwrap());
        wait_until("it to wait", PATIENCE, || {
            server.query::<u64>(&["LLEN", "{crosslock:n}:queue"]) == 1
        });
        let before = proxy.requests();
        *first = 5;
        MutexGuard::unlock(first).unwrap();
        let guard = waiter.join().unwrap();
        assert_eq!((*guard, proxy.requests() - before), (5, 1));
    });
    assert_eq!(server.pttl("{crosslock:n}:value"), -1);
}
