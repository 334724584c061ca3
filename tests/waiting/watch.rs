//! What a server shows of those that wait.

use std::time::Duration;

use crosslock::{LockGuard, Locker};

use super::{PATIENCE, millis, wait_in_vain};
use support::puppet::Puppet;
use support::{RedisServer, wait_until};

/// The keys of the name "a".
pub(crate) const LOCK: &str = "{crosslock:a}";
pub(crate) const FENCE: &str = "{crosslock:a}:fence";
pub(crate) const QUEUE: &str = "{crosslock:a}:queue";
pub(crate) const WAITERS: &str = "{crosslock:a}:waiters";

/// The owners that wait for "a", first come first.
pub(crate) fn line(server: &RedisServer) -> Vec<String> {
    server.query(&["LRANGE", QUEUE, "0", "-1"])
}

#[track_caller]
pub(crate) fn wait_for_line(server: &RedisServer, length: usize) {
    let what = format!("a line of {length}");
    wait_until(&what, PATIENCE, || line(server).len() == length);
}

/// How many inboxes are open.
pub(crate) fn inboxes(server: &RedisServer) -> usize {
    let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    clients.lines().count()
}

#[track_caller]
pub(crate) fn wait_for_inboxes(server: &RedisServer, count: usize) {
    let what = format!("{count} inboxes");
    wait_until(&what, PATIENCE, || inboxes(server) == count);
}

/// Has a locker wait for "a", which is taken, until it has an inbox and so `count` of them are open: on a busy machine
/// a short wait may end before.
#[track_caller]
pub(crate) fn open_inbox(server: &RedisServer, lock: &Locker, count: usize) {
    wait_until("an inbox", PATIENCE, || {
        wait_in_vain(lock, "a", millis(50));
        inboxes(server) == count
    });
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

/// The same, but soon.
#[track_caller]
pub(crate) fn wait_until_nothing_is_left(server: &RedisServer) {
    wait_until("all to have left", PATIENCE, || {
        server.keys().iter().all(|key| key.ends_with(":fence"))
    });
}

/// A locker and its lock "a".
pub(crate) fn holder(server: &RedisServer) -> (Locker, LockGuard) {
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.lock("a").unwrap();
    (lock, guard)
}

/// So many processes, which stand in line for "a" in this order, hear of grants, and let it go as soon as they have it.
pub(crate) fn processes_in_line(server: &RedisServer, count: usize, ttl: Duration) -> Vec<Puppet> {
    let mut processes = Puppet::start_many(count, &server.url(), ttl);
    let before = line(server).len();
    for (at, process) in processes.iter_mut().enumerate() {
        process.pass("a");
        wait_for_line(server, before + at + 1);
        wait_until("the last in line to hear", PATIENCE, || {
            let last = line(server).pop().expect("nobody gives up");
            let waiter: String = server.query(&["HGET", WAITERS, &last]);
            waiter.contains(":inbox:")
        });
    }
    processes
}

/// Asserts that these hold "a" one after the other, after the token `last`; the first finds it abandoned or not.
#[track_caller]
pub(crate) fn assert_served_in_order(processes: &mut [Puppet], last: u64, abandoned: bool) {
    let mut before = (last, Duration::ZERO);
    for (at, process) in processes.iter_mut().enumerate() {
        let holding = process.holding();
        assert!(
            holding.token > before.0,
            "{at}: {holding:?} after {before:?}"
        );
        assert!(
            holding.since > before.1,
            "{at}: {holding:?} after {before:?}"
        );
        assert_eq!(holding.abandoned, abandoned && at == 0, "{at}: {holding:?}");
        before = (holding.token, holding.since);
        process.unlocked();
    }
}
