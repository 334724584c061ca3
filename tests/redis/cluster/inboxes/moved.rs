//! Slots that move, and masters that are replaced, between the waiters' questions and the release.

use support::Cluster;

use super::*;

const WAITERS: usize = 4;

/// A lock that is held, and those that wait for it; the first node of each is another.
fn contended(cluster: &Cluster, name: &str) -> (LockGuard, Queue) {
    let urls = urls(cluster);
    let guard = held(&open(&urls[1]), name);
    let server = cluster.node(cluster.owner(&key(name)));
    let queue = Queue::of(WAITERS, &urls, name, server);
    (guard, queue)
}

#[test]
fn waiters_keep_their_order_when_the_slot_moves() {
    let cluster = start();
    let name = name_on(&cluster, 0, 0);
    let (guard, queue) = contended(&cluster, &name);
    cluster.move_slot(slot(&name), 1);
    queue.assert_still_waiting();
    queue.assert_served_in_order(guard);
    wait_until("nobody to hear at the old node", PATIENCE, || {
        inboxes(cluster.node(0)) == 0
    });
}
