//! A server that answers, but has no time: it loads its data.

use std::thread;

use crosslock::Locker;

use super::*;
use support::{RedisServer, wait_until};

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
