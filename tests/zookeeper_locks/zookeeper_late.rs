//! Requests that come late, from waiters that have left and from sessions that have ended.

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

/// What an earlier session has sent may be carried out late, between the waiter's last look and its new node.
#[test]
fn older_node_of_the_same_owner_lets_nobody_in() {
    let server = setup().start();
    let (lock, mut earlier) = (locker(&server), server.session());
    drop(lock.lock("a").unwrap());
    let holder = format!("/locks/ns/a/x-{}-lock-", "0".repeat(36));
    let holder = earlier.create(&holder, "", 3).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| lock.try_lock_for("a", PATIENCE));
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        let node = line(&server, "a").pop().unwrap();
        let uuid = &node[2..38];
        let older = format!("/locks/ns/a/x-{uuid}-lock--000000001");
        earlier.create(&older, "", 1).unwrap();
        // The waiter looks again.
        earlier.set(&holder, "").unwrap();
        let got_in = eventually(PATIENCE / 10, || waits.is_finished());
        assert!(!got_in, "another has the lock");
        earlier.close();
        assert!(waits.join().unwrap().unwrap().is_some());
    });
}
