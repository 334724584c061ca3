//! Users who may not hear of grants, or not tell others: everyone is served all the same, only later.

use std::thread;

use crosslock::{LockGuard, Locker};

use super::rights::{OURS, denials, server_with, url_of, user};
use super::*;
use support::{RedisServer, wait_until};

const KEYS: &str = "~{crosslock:* resetchannels";

/// Those who can't hear: without the command, without any channel, with the channels of others.
const DEAF: [&str; 3] = ["no-subscribe", "no-channel", "others-channel"];

fn server() -> RedisServer {
    server_with(&[
        user("no-subscribe", OURS, Some("subscribe")),
        user("no-channel", KEYS, None),
        user("others-channel", &format!("{KEYS} &other:inbox:*"), None),
        user("no-publish", OURS, Some("publish")),
        user("no-count", OURS, Some("pubsub|numsub")),
        user("app", OURS, None),
    ])
}

/// With a ttl that makes heartbeats come every second.
fn locker(server: &RedisServer, user: &str) -> Locker {
    let builder = Locker::builder(&url_of(server, user)).ttl(millis(3_000));
    builder.build().expect("open")
}

#[track_caller]
fn assert_next(guard: LockGuard, token_before: u64, server: &RedisServer) {
    assert!(guard.fencing_token() > token_before);
    assert!(!guard.was_abandoned());
    assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_released(server);
}

#[test]
fn waiter_that_may_not_hear_is_served_by_its_heartbeats() {
    let server = server();
    for name in DEAF {
        let (app, waiting) = (locker(&server, "app"), locker(&server, name));
        let guard = held(&app);
        let token = guard.fencing_token();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| waiting.lock(NAME).unwrap());
            wait_for_line(&server, 1);
            wait_until("it may not hear", PATIENCE, || !denials(&server).is_empty());
            guard.unlock().unwrap();
            assert!(server.get(LOCK).is_some(), "it is the waiter's now");
            assert_next(waiter.join().unwrap(), token, &server);
        });
    }
    assert_no_clients(&server);
}
