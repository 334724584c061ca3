//! Forks of a process whose server is found by asking sentinels, or the nodes of a cluster: the child asks by connections of
//! its own.

use support::{Child, SentinelSet, Setup, forked, hear, is_child, say};

use super::forks::{
    LEASE, assert_is_a_copy, assert_succeeds, succeeds_in_a_process_of_its_own, succeeds_with,
};
use super::*;
use crosslock::Error;

/// Lasts longer than a failover.
const LASTING: &str = "9000";

fn succeeds(entry: &str) {
    let set = SentinelSet::start();
    succeeds_in_a_process_of_its_own(entry, &set.url());
    assert_nothing_is_left(&set);
}

#[track_caller]
fn assert_nothing_is_left(set: &SentinelSet) {
    let keys = set.member(set.master()).keys();
    assert!(keys.iter().all(|key| key.ends_with(":fence")), "{keys:?}");
}

#[test]
fn inherited_guard_is_neither_held_nor_renewed_nor_released() {
    succeeds("forks::child_forks_with_guards");
}

#[test]
fn child_forked_while_other_threads_lock_can_lock() {
    succeeds("forks::child_forks_while_its_threads_lock");
}

#[test]
fn child_forks_and_the_master_fails_over() {
    if !is_child("forks_of_sets::child_forks_and_the_master_fails_over") {
        return;
    }
    let lock = locker();
    let guard = lock.lock("parents").unwrap();
    let pid = forked(|| {
        say("forked");
        hear();
        assert_is_a_copy(&guard);
        lock.lock("childs").unwrap().unlock().unwrap();
        assert!(lock.try_lock("parents").unwrap().is_none());
    });
    assert_succeeds(pid);
    guard.verify().unwrap();
    assert!(lock.try_lock("parents").unwrap().is_none());
    guard.unlock().unwrap();
}

#[test]
fn forked_child_finds_the_next_master_and_leaves_the_guard_to_its_parent() {
    let set = SentinelSet::start();
    let entry = "forks_of_sets::child_forks_and_the_master_fails_over";
    let mut child = Child::spawn(entry, &[(URL, &*set.url()), (TTL, LASTING)]);
    child.wait_for("forked", PATIENCE);
    set.wait_until_settled();
    set.failover();
    // Until then the old master says that it has released what the new one has.
    set.wait_until_settled();
    child.tell("go on");
    assert!(child.wait(PATIENCE).success());
    assert_nothing_is_left(&set);
}

#[test]
fn forks_in_a_cluster_share_nothing() {
    let cluster = Setup::new().calm().cluster();
    for entry in [
        "forks::child_forks_with_guards",
        "forks::child_forks_and_lets_the_child_hold",
        "forks::child_forks_while_its_threads_lock",
        "forks_of_sets::child_forks_with_guards_of_several_slots",
        "forks::child_forks_and_drops_all",
    ] {
        // A renewal asks the nodes who has the slot, too.
        succeeds_with(entry, &cluster.url(), 4 * LEASE);
        let keys = (0..3).flat_map(|node| cluster.node(node).keys());
        let keys: Vec<_> = keys.filter(|key| !key.ends_with(":fence")).collect();
        assert!(keys.is_empty(), "{entry}: {keys:?}");
    }
}

#[test]
fn child_forks_with_guards_of_several_slots() {
    if !is_child("forks_of_sets::child_forks_with_guards_of_several_slots") {
        return;
    }
    let (lock, names) = (locker(), ["a", "b", "c", "d"]);
    // In the parent it stays as it is.
    let mut guard = Some(lock.lock_all(&names).unwrap());
    let pid = forked(|| {
        let copy = guard.take().unwrap();
        assert!(!copy.is_held());
        assert!(matches!(copy.verify(), Err(Error::Lost { .. })));
        for name in names {
            assert!(lock.try_lock(name).unwrap().is_none());
        }
        let own = lock.lock_all(&["e", "f", "g"]).unwrap();
        own.verify().unwrap();
        own.unlock().unwrap();
        drop(copy);
    });
    assert_succeeds(pid);
    let guard = guard.unwrap();
    guard.verify().unwrap();
    guard.unlock().unwrap();
}
