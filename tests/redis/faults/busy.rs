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
        wait_until("the server to be busy", PATIENCE, || {
            let ping = cmd("PING").exec(&mut admin);
            ping.is_err_and(|error| error.code() == Some("BUSY"))
        });
        let failed = [guard.verify(), locker.try_lock("other").map(drop)];
        for error in failed.map(Result::unwrap_err) {
            assert!(matches!(error, Error::Unavailable { .. }), "{error}");
            assert!(shown(&error).contains("BUSY"), "{error}");
        }
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
    guard.unlock().unwrap();
    assert_released(&server);
}

#[test]
fn server_that_loads_its_data_is_waited_for_and_opening_says_so() {
    let server = RedisServer::builder()
        .config("key-load-delay", "2000")
        .start();
    let locker = open(&server.url());
    // While it loads a server looks at its clients every 2 MB.
    for key in 0..500 {
        let text: String = std::iter::repeat_with(fastrand::alphanumeric)
            .take(10_000)
            .collect();
        server.query::<()>(&["SET", &format!("key-{key}"), &text]);
    }
    server.query::<()>(&["SAVE"]);
    server.kill();
    thread::scope(|scope| {
        scope.spawn(|| server.restart());
        wait_until("the server to load", PATIENCE, || {
            let error = Locker::open(&server.url()).expect_err("it loads");
            shown(&error).contains("LOADING")
        });
        locker.lock(NAME).unwrap().unlock().unwrap();
    });
}
