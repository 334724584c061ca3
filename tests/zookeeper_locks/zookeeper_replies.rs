//! Replies that are lost, with their connections.

use std::thread;

use crosslock::{CancelToken, Locker};
use support::eventually;

use crate::{PATIENCE, line, locker, setup};

/// The next takes the first in line for the holder, and makes `held` that one's, while it is on its way out.
#[test]
fn waiter_that_leaves_late_is_not_taken_for_a_holder_that_never_released() {
    let server = setup().proxies().start();
    let other = locker(&server);
    let past_the_proxy = || {
        let (proxy, own) = (server.proxy().addr(), server.own_addr());
        let url = server.url_at("locks");
        let url = url.replace(&proxy.to_string(), &own.to_string());
        let builder = Locker::builder(&format!("{url}?tick=100ms"));
        builder.namespace("ns").build().unwrap()
    };
    let (lock, next) = (past_the_proxy(), past_the_proxy());
    for _ in 0..2 {
        let guard = lock.lock("a").unwrap();
        let token = CancelToken::new();
        let waiter = other.with_cancel(&token);
        let in_line = |many| {
            assert!(eventually(PATIENCE, || line(&server, "a").len() == many));
        };
        thread::scope(|scope| {
            let waits = scope.spawn(|| waiter.lock("a"));
            in_line(2);
            let node = line(&server, "a").remove(1);
            server.proxy().hold_next_request(&node);
            token.cancel();
            assert!(waits.join().unwrap().is_err());
            server.proxy().await_held();
            guard.unlock().unwrap();
            let comes = scope.spawn(|| next.try_lock_for("a", PATIENCE));
            in_line(2);
            let mut session = server.session();
            assert!(eventually(PATIENCE, || session
                .get("/locks/ns/a/held")
                .is_ok_and(|held| node.contains(&held))));
            session.close();
            server.proxy().pass_held();
            let guard = comes.join().unwrap().unwrap().expect("the first has left");
            assert!(!guard.was_abandoned());
        });
    }
}
