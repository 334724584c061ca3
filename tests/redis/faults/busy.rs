//! Servers that answer, but have no time: they run a script, load their data, or miss others.

use std::thread;

use crosslock::{Error, Locker};
use redis::cmd;

use super::*;
use support::{Proxy, RedisServer, wait_until};

#[test]
fn lock_rides_over_a_busy_script() {
    let server = RedisServer::builder()
        .config("lua-time-limit", "20")
        .start();
    let proxy = Proxy::start(server.addr());
    let locker = open(&proxy.url());
    let guard = held(&locker);
    let (mut busy, mut admin) = (server.connection(), server.connection());
    thread::scope(|scope| {
        let script = scope.spawn(move || {
            let mut eval = cmd("EVAL");
            eval.arg("while true do end").arg(0).exec(&mut busy)
        });
        let is_busy = |admin: &mut redis::Connection| {
            cmd("PING")
                .exec(admin)
                .is_err_and(|error| error.code() == Some("BUSY"))
        };
        wait_until("the server to be busy", PATIENCE, || is_busy(&mut admin));
        let error = guard.verify().unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(shown(&error).contains("BUSY"), "{error}");
        let error = locker.try_lock("other").unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        let waiter = scope.spawn(|| locker.lock("other").unwrap());
        let requests = proxy.requests();
        wait_until("some attempts", PATIENCE, || {
            proxy.requests() > requests + 2
        });
        assert!(!waiter.is_finished());
        cmd("SCRIPT").arg("KILL").exec(&mut admin).unwrap();
        script.join().unwrap().unwrap_err();
        waiter.join().unwrap().unlock().unwrap();
    });
    guard.verify().unwrap();
    guard.unlock().unwrap();
    drop((locker, admin));
    assert_released(&server);
    assert_no_clients(&server);
}

#[test]
fn lock_rides_over_a_server_that_loads_its_data_and_opening_says_so() {
    const KEYS: usize = 500;
    let server = RedisServer::builder()
        .config("key-load-delay", "2000")
        .start();
    let locker = open(&server.url());
    let mut fill = redis::pipe();
    for key in 0..KEYS {
        // While it loads a server looks at its clients every 2 MB.
        fill.set(format!("key-{key}"), random_text()).ignore();
    }
    fill.exec(&mut server.connection()).unwrap();
    server.query::<()>(&["SAVE"]);
    server.kill();
    thread::scope(|scope| {
        scope.spawn(|| server.restart());
        wait_until(
            "the server says that it loads",
            PATIENCE,
            || match Locker::open(&server.url()) {
                Err(error @ Error::Unavailable { .. }) => shown(&error).contains("LOADING"),
                opened => panic!("{opened:?}"),
            },
        );
        let guard = locker.lock(NAME).unwrap();
        assert_eq!(server.keys().len(), KEYS + 2);
        guard.unlock().unwrap();
    });
}

/// Too random to be compressed, and 10 kB long.
fn random_text() -> Vec<u8> {
    (0..10_000).map(|_| fastrand::u8(..)).collect()
}
