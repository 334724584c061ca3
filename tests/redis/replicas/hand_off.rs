//! A grant that a waiter hears of is asked for: only the answer says that replicas have it.

use std::thread;

use support::RedisServer;

use super::*;

/// Waits until the one that waits hears of grants.
fn wait_for_inbox(master: &RedisServer) {
    wait_until("an inbox", PATIENCE, || {
        let waiters: Vec<String> = master.query(&["HVALS", "{crosslock:n}:waiters"]);
        waiters.iter().any(|waiter| waiter.contains(":inbox:"))
    });
}

#[test]
fn grant_that_no_replica_has_is_not_believed() {
    let set = Replicated::start(1);
    let guard = held(&builder(&set, 0, 1).ttl(LONG).build().unwrap());
    let waiting = builder(&set, 0, 1).ttl(LONG).build().unwrap();
    let waiter = thread::spawn(move || waiting.lock(NAME).unwrap());
    let master = set.member(0);
    wait_for_inbox(master);
    let before = master.get(LOCK);
    stop_replicas(&set);
    guard.unlock().unwrap();
    wait_until("the grant", PATIENCE, || master.get(LOCK) != before);
    let calls = || master.command_calls("wait");
    let asked = calls();
    wait_until("questions", PATIENCE, || calls() > asked + 1);
    assert!(!waiter.is_finished());
    continue_replicas(&set);
    waiter.join().unwrap().unlock().unwrap();
}
