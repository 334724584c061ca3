//! Locks, values, readers, permits and several names on a server: what they cost, and late copies of their requests.

#![cfg(all(feature = "redis", feature = "value"))]

use std::thread;
use std::time::Duration;

use crosslock::{Error, Locker, LostReason, MutexGuard, RwLockReadGuard};
use support::scripts::{ACQUIRE, digest};
use support::{Proxy, RedisServer, wait_until};

/// The lock of all tests, and where it is.
const NAME: &str = "n";
const LOCK: &str = "{crosslock:n}";

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

/// The lock of the owner that has it is lost, another holds it and stores a value, and a late copy of the first owner's
/// request takes it for that owner again.
fn lose_and_regain(server: &RedisServer) {
    let owner = server.get(LOCK).expect("an owner");
    server.query::<()>(&["DEL", LOCK]);
    let other = Locker::open(&server.url()).unwrap();
    other.mutex(NAME, 0u64).unwrap().set(7).unwrap();
    let keys = [
        "",
        ":fence",
        ":queue",
        ":waiters",
        ":read_queue",
        ":holders",
    ];
    let keys = keys.map(|suffix| format!("{LOCK}{suffix}"));
    let mut words = vec!["EVALSHA".to_owned(), digest(ACQUIRE), "6".to_owned()];
    words.extend(keys);
    words.extend([&owner, "30000", "x"].map(str::to_owned));
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    server.query::<redis::Value>(&words);
    assert_eq!(server.get(LOCK), Some(owner));
}

#[test]
fn renewal_finds_that_another_had_the_lock_meanwhile() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(PATIENCE);
    let asked = builder.clone().hand_over(PATIENCE).build().unwrap();
    let renewed = builder.renew_every(Duration::from_millis(500));
    let renewed = renewed.build().unwrap();
    for (locker, names) in [
        (&asked, &["n"][..]),
        (&renewed, &["n"]),
        (&renewed, &["n", "m"]),
    ] {
        let guard = locker.lock_all(names).unwrap();
        lose_and_regain(&server);
        if std::ptr::eq(locker, &asked) {
            let verified = guard.verify();
            assert!(matches!(verified, Err(Error::Lost { .. })), "{verified:?}");
        }
        let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
        assert_eq!(lost.reason, LostReason::NotOwner);
        drop(guard);
        server.query::<()>(&["DEL", LOCK]);
    }
}
