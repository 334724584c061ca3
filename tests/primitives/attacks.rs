//! What was broken once: by a server that forgets, by slow answers, by values that can't be read.

use std::thread;

use crosslock::{Error, Locker, MutexGuard};

use super::{FENCE, LOCK, NAME, VALUE, millis, open};
use support::{Fault, Proxy, RedisServer};

fn server_with_proxy() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    (server, proxy)
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
