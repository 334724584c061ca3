//! What a server shows of those that wait.

use crosslock::{LockGuard, Locker};

use super::PATIENCE;
use support::{RedisServer, wait_until};

/// So many wait for "a".
#[track_caller]
pub(crate) fn wait_for_line(server: &RedisServer, length: usize) {
    wait_until("the line", PATIENCE, || {
        server.query::<usize>(&["LLEN", "{crosslock:a}:queue"]) == length
    });
}

/// How many inboxes are open.
pub(crate) fn inboxes(server: &RedisServer) -> usize {
    let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    clients.lines().count()
}

/// Waits until somebody waits for a name who will be heard.
#[track_caller]
pub(crate) fn wait_until_heard(server: &RedisServer, namespace: &str, name: &str) {
    let waiters = format!("{{{namespace}:{name}}}:waiters");
    wait_until("it to be heard", PATIENCE, || {
        let waiters: Vec<String> = server.query(&["HVALS", &waiters]);
        waiters.iter().any(|waiter| waiter.contains(":inbox:"))
    });
}

/// Nothing but counters.
#[track_caller]
pub(crate) fn assert_nothing_left(server: &RedisServer) {
    let keys = server.keys();
    assert!(keys.iter().all(|key| key.ends_with(":fence")), "{keys:?}");
}

/// A locker and its lock "a".
pub(crate) fn holder(server: &RedisServer) -> (Locker, LockGuard) {
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.lock("a").unwrap();
    (lock, guard)
}
