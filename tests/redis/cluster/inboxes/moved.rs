//! Slots that move, and masters that are replaced, between the waiters' questions and the release.

use std::time::Instant;

use crosslock::LostReason;
use support::{Cluster, Stopwatch};

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

#[test]
fn waiters_keep_their_order_when_the_slot_moves_and_comes_back() {
    let cluster = start();
    let name = name_on(&cluster, 0, 0);
    let (guard, queue) = contended(&cluster, &name);
    cluster.move_slot(slot(&name), 1);
    cluster.move_slot(slot(&name), 0);
    // A node drops the subscriptions of a slot that leaves it. A release that comes back sooner than its waiters takes
    // them for gone, because they have said that they hear at this node.
    wait_until("all to hear at the first node again", PATIENCE, || {
        channels(cluster.node(0)) == WAITERS + 1
    });
    queue.assert_served_in_order(guard);
}

#[test]
fn waiters_keep_their_order_when_the_release_comes_right_behind_the_move() {
    let cluster = start();
    let name = name_on(&cluster, 0, 0);
    for round in 0..6 {
        let (guard, queue) = contended(&cluster, &name);
        let migration = cluster.migration(slot(&name), (round + 1) % 2);
        migration.import();
        migration.migrate();
        migration.move_keys();
        migration.finish();
        queue.assert_served_in_order(guard);
        cluster.wait_until_ok();
    }
}

#[test]
fn waiters_keep_their_order_when_their_master_stood_still_and_was_replaced() {
    let cluster = Cluster::start();
    let name = name_on(&cluster, 0, 0);
    let (guard, queue) = contended(&cluster, &name);
    cluster.node(0).stop();
    cluster.wait_for_other_owner(&key(&name), 0);
    cluster.node(0).cont();
    cluster.wait_until_ok();
    queue.assert_served_in_order(guard);
}

#[test]
fn waiter_that_comes_to_a_slot_on_its_way_is_served_when_it_has_arrived() {
    let cluster = start();
    let name = name_on(&cluster, 0, 0);
    let urls = urls(&cluster);
    let guard = held(&open(&urls[1]), &name);
    let migration = cluster.migration(slot(&name), 1);
    migration.import();
    migration.migrate();
    migration.move_keys();
    // The old node sends to the new one, which is asked, and refuses to have the channel yet.
    let (locker, wanted) = (open(&urls[2]), name.clone());
    let waiting = thread::spawn(move || locker.try_lock_for(&wanted, 2 * PATIENCE));
    thread::sleep(millis(500));
    let questions = cluster.node(1).command_calls("evalsha");
    assert!(questions < 500, "{questions} questions: it never pauses");
    migration.finish();
    wait_until("the waiter to hear at the new node", PATIENCE, || {
        hearing(cluster.node(1), &name) == 1
    });
    drop(guard.unlock());
    let next = waiting.join().expect("no panic").expect("lock");
    drop(next.expect("it has the lock"));
}

/// Another name in the same slot.
fn sibling(name: &str) -> String {
    let names = (0..).map(|number| format!("sibling-{number}"));
    let mut siblings = names.filter(|other| slot(other) == slot(name));
    siblings.next().expect("there is one")
}

#[test]
fn holder_that_waits_in_the_slot_is_told_of_a_break_at_once_also_when_the_slot_has_moved() {
    let cluster = start();
    let urls = urls(&cluster);
    let (holder, operator) = (open(&urls[1]), open(&urls[2]));
    let name = name_on(&cluster, 0, 0);
    let other = sibling(&name);
    let _taken = held(&operator, &other);
    let waiting = holder.clone();
    thread::spawn(move || waiting.try_lock_for(&other, 2 * PATIENCE).map(drop));
    for node in [0, 1] {
        if node == 1 {
            cluster.move_slot(slot(&name), node);
        }
        wait_until("the holder to hear", PATIENCE, || {
            channels(cluster.node(node)) == 2
        });
        let guard = held(&holder, &name);
        let (watch, began) = (Stopwatch::start(), Instant::now());
        operator.break_lock(&name).expect("break");
        let lost = guard.lost().recv_timeout(PATIENCE).expect("it is told");
        println!("told within {:?}", began.elapsed());
        watch.assert_within(millis(100));
        assert_eq!(lost.reason, LostReason::Broken);
    }
}
