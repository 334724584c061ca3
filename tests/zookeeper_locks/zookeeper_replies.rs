//! Replies that are lost, with their connections.

use std::thread;

use crosslock::{CancelToken, Locker};
use support::eventually;

use crate::{PATIENCE, line, locker, setup};

#[test]
fn node_whose_reply_was_lost_is_found_again() {
    let server = setup().proxies().start();
    let lock = locker(&server);
    // The name is there: nothing else is asked for before the node.
    lock.lock("a").unwrap().unlock().unwrap();
    for lost in ["/x-", "/held"] {
        let before = server.proxy().lost_replies();
        server.proxy().lose_next_reply(lost, true);
        let guard = lock.lock("a").unwrap();
        assert!(server.proxy().lost_replies() > before, "{lost}");
        assert!(!guard.was_abandoned(), "{lost}");
        assert_eq!(line(&server, "a").len(), 1, "{lost}");
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert!(line(&server, "a").is_empty(), "{lost}");
    }
}

#[test]
fn nodes_of_several_names_are_found_again() {
    let server = setup().proxies().start();
    let lock = locker(&server);
    drop(lock.lock_all(&["a", "b"]).unwrap());
    server.proxy().lose_next_reply("/x-", true);
    let guard = lock.lock_all(&["a", "b"]).unwrap();
    assert!(server.proxy().lost_replies() > 0);
    assert_eq!(line(&server, "a").len() + line(&server, "b").len(), 2);
    assert!(!guard.was_abandoned());
    guard.unlock().unwrap();
    for name in ["a", "b"] {
        assert!(!lock.lock(name).unwrap().was_abandoned(), "{name}");
    }
}

#[test]
fn release_whose_reply_was_lost_is_done() {
    let server = setup().proxies().start();
    let (lock, other) = (locker(&server), locker(&server));
    let guard = lock.lock("a").unwrap();
    server.proxy().lose_next_reply("/held", true);
    guard.unlock().unwrap();
    assert!(server.proxy().lost_replies() > 0);
    let next = other.try_lock("a").unwrap().expect("it was released");
    assert!(!next.was_abandoned());
}

#[test]
fn waiter_that_gives_up_without_an_answer_leaves_nothing() {
    let server = setup().proxies().start();
    let (lock, other) = (locker(&server), locker(&server));
    let guard = lock.lock("a").unwrap();
    server.proxy().lose_next_reply("/x-", true);
    // What it says depends on whether it was answered again in time.
    let given_up = other.try_lock_for("a", PATIENCE / 40);
    assert!(!matches!(given_up, Ok(Some(_))), "{given_up:?}");
    assert!(eventually(PATIENCE, || line(&server, "a").len() == 1));
    guard.unlock().unwrap();
    assert!(!other.lock("a").unwrap().was_abandoned());
}

#[test]
fn waiters_and_holders_survive_a_lost_connection() {
    let server = setup().proxies().start();
    let (lock, other) = (locker(&server), locker(&server));
    let guard = lock.lock("a").unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| other.try_lock_for("a", PATIENCE));
        assert!(eventually(PATIENCE, || line(&server, "a").len() == 2));
        let before = line(&server, "a");
        server.proxy().set(support::Fault::Refuse);
        assert!(eventually(PATIENCE, || server.proxy().connections() == 0));
        server.proxy().set(support::Fault::None);
        guard.verify().unwrap();
        assert_eq!(line(&server, "a"), before);
        guard.unlock().unwrap();
        let next = waits.join().unwrap().unwrap().expect("it was released");
        assert!(!next.was_abandoned());
    });
}

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
