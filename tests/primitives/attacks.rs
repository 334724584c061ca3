//! What was broken once: by a server that forgets, by slow answers, by values that can't be read.

use std::thread;

use crosslock::{Error, Locker, MutexGuard};

use super::{FENCE, LOCK, NAME, PATIENCE, VALUE, millis, open, within};
use support::scripts::{RELEASE, RELEASE_ALL, RENEW, digest};
use support::{Fault, Proxy, RedisServer};

fn server_with_proxy() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    (server, proxy)
}

/// Takes a lock that was released, and didn't run out.
#[track_caller]
fn take_released(server: &RedisServer, name: &str) {
    let guard = open(server).try_lock_for(name, PATIENCE).unwrap().unwrap();
    assert!(!guard.was_abandoned());
}

#[test]
fn names_of_a_lost_set_are_free_once_its_guard_is_gone() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(10 * PATIENCE);
    let guard = builder.build().unwrap().lock_all(&["a", NAME]).unwrap();
    server.query::<()>(&["DEL", LOCK]);
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    assert!(guard.unlock().is_err());
    take_released(&server, "a");
}

/// `hand_over` is long enough that the store is begun, and over when it is done.
#[test]
fn drop_whose_store_is_slow_ends_within_its_bound() {
    let (_server, proxy) = server_with_proxy();
    let builder = Locker::builder(&proxy.url()).hand_over(millis(150));
    let counter = builder.build().unwrap().mutex(NAME, 0u64).unwrap();
    let mut guard = counter.lock().unwrap();
    thread::scope(|scope| {
        let next = scope.spawn(|| drop(counter.lock().unwrap()));
        thread::sleep(millis(60));
        *guard += 1;
        proxy.set(Fault::Delay(millis(85)));
        proxy.lose_next_reply(&digest(RENEW), false);
        within(millis(500), || drop(guard));
        proxy.set(Fault::None);
        next.join().unwrap();
    });
}

/// As one that was restarted from a snapshot, or a replica that lags.
#[test]
fn unlock_to_a_server_that_has_forgotten_is_no_success() {
    let (server, proxy) = server_with_proxy();
    let counter = Locker::open(&proxy.url()).unwrap();
    let counter = counter.mutex(NAME, 0u64).unwrap();
    *counter.lock().unwrap() = 1;
    let mut guard = counter.lock().unwrap();
    *guard = 2;
    proxy.set(Fault::BlackHole);
    let outcome = thread::scope(|scope| {
        let unlock = scope.spawn(|| MutexGuard::unlock(guard));
        thread::sleep(millis(80));
        server.query::<()>(&["DEL", LOCK, FENCE]);
        proxy.set(Fault::None);
        unlock.join().unwrap()
    });
    let stored = server.get(VALUE);
    assert!(
        outcome.is_err() || stored.as_deref() == Some("2"),
        "{stored:?}"
    );
}

#[test]
fn conflict_of_one_of_several_names_names_that_key() {
    let server = RedisServer::start();
    server.query::<()>(&["SET", FENCE, "x"]);
    match open(&server).lock_all(&["a", NAME]) {
        Err(Error::Conflict { key, .. }) => assert_eq!(key, FENCE),
        other => panic!("{other:?}"),
    }
}

#[test]
fn timed_call_that_finds_a_corrupt_value_ends_in_time() {
    let (server, proxy) = server_with_proxy();
    server.query::<()>(&["SET", VALUE, "nonsense"]);
    let counter = Locker::open(&proxy.url()).unwrap();
    let counter = counter.mutex(NAME, 0u64).unwrap();
    proxy.lose_next_reply(&digest(RELEASE), false);
    let outcome = within(millis(110), || counter.try_lock_for(millis(10)));
    assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{outcome:?}");
    take_released(&server, NAME);
}

#[test]
fn verify_prolongs_nothing() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(millis(10_000));
    let lock = builder.renew(false).build().unwrap();
    let permits = lock.semaphore("s", 1).unwrap();
    let guards = [
        lock.read("r").unwrap(),
        permits.acquire().unwrap(),
        lock.lock_all(&["a", "b"]).unwrap(),
    ];
    thread::sleep(millis(500));
    for guard in guards {
        guard.verify().unwrap();
        std::mem::forget(guard);
    }
    for name in ["r", "s", "a", "b"] {
        let left = server.pttl(&format!("{{crosslock:{name}}}"));
        assert!(left <= 9_500, "{name} lasts for {left} ms");
    }
}

#[test]
fn unlock_whose_reply_is_lost_is_ok_only_where_the_second_answer_proves_it() {
    let (server, proxy) = server_with_proxy();
    let lock = Locker::open(&proxy.url()).unwrap();
    // From here on the server knows the scripts: else the reply that is lost says that it doesn't.
    drop((lock.read("r").unwrap(), lock.lock_all(&["a", "b"]).unwrap()));
    let guards = [
        lock.read("r").unwrap(),
        lock.semaphore("s", 2).unwrap().acquire().unwrap(),
        lock.lock_all(&["a", "b"]).unwrap(),
    ];
    for (guard, script) in guards.into_iter().zip([RELEASE, RELEASE, RELEASE_ALL]) {
        let lost = proxy.lost_replies();
        proxy.lose_next_reply(&digest(script), true);
        let outcome = guard.unlock();
        // The counter tells of an exclusive holder. Of one that shares nothing is left that tells who ended its lease.
        match outcome {
            Err(Error::Unavailable { .. }) if script == RELEASE => {}
            Ok(()) if script == RELEASE_ALL => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(proxy.lost_replies(), lost + 1);
    }
    for name in ["r", "s", "a", "b"] {
        assert_eq!(server.get(&format!("{{crosslock:{name}}}")), None);
    }
}
