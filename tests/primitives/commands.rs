//! What each operation costs, counted by the server.

use std::thread;

use crosslock::{Locker, MutexGuard, RwLockReadGuard};

use super::*;
use support::{Proxy, RedisServer};

/// Nothing else is sent to a server that knows them.
#[test]
fn each_operation_is_so_many_scripts() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let lock = Locker::open(&proxy.url()).unwrap();
    let names: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let operations: [(&str, u64, &dyn Fn()); 7] = [
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
        server.reset_stats();
        operation();
        assert_eq!(server.command_calls("evalsha"), scripts, "{what}");
        assert_eq!(proxy.requests() - before, scripts, "{what}");
    }
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
