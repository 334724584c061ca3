//! What holds in every place: threads lock while they end, and forked children share nothing.

use super::places::{Place, in_each_place};
use super::*;
use support::Child;

in_each_place! {
    memory: thread_that_ends_can_lock
        child_forked_while_other_threads_lock_can_lock
        tokens_and_lockers_of_a_forked_child_are_its_own;
    named_memory: child_forked_while_other_threads_lock_can_lock;
    #[cfg(feature = "file")]
    file: thread_that_ends_can_lock
        inherited_guard_is_neither_held_nor_renewed_nor_released
        forked_child_keeps_a_lock_of_its_own
        child_forked_while_other_threads_lock_can_lock
        forked_child_that_drops_its_locker_releases_nothing
        tokens_and_lockers_of_a_forked_child_are_its_own;
    #[cfg(feature = "redis")]
    redis: thread_that_ends_can_lock
        inherited_guard_is_neither_held_nor_renewed_nor_released
        forked_child_keeps_a_lock_of_its_own
        child_forked_while_other_threads_lock_can_lock
        forked_child_that_drops_its_locker_releases_nothing
        tokens_and_lockers_of_a_forked_child_are_its_own;
    #[cfg(feature = "redis")]
    sentinel: inherited_guard_is_neither_held_nor_renewed_nor_released
        child_forked_while_other_threads_lock_can_lock;
    #[cfg(feature = "redis")]
    cluster: forks_share_nothing;
    #[cfg(feature = "etcd")]
    etcd: inherited_guard_is_neither_held_nor_renewed_nor_released
        child_forked_while_other_threads_lock_can_lock
        forked_child_that_drops_its_locker_releases_nothing
        tokens_and_lockers_of_a_forked_child_are_its_own;
    #[cfg(feature = "zookeeper")]
    zookeeper: inherited_guard_is_neither_held_nor_renewed_nor_released
        child_forked_while_other_threads_lock_can_lock
        forked_child_that_drops_its_locker_releases_nothing
        tokens_and_lockers_of_a_forked_child_are_its_own;
}

/// In the destructor of a thread-local, also when the process ends.
fn thread_that_ends_can_lock(place: &Place) {
    for end in ["thread", "process"] {
        let args = [(URL, &*place.url), ("TEST_END", end)];
        let mut child = Child::spawn("locks while it ends", &args);
        child.wait_for("locked", PATIENCE);
        let status = child.wait(PATIENCE);
        assert!(status.success(), "{end}: {status}");
    }
}

fn inherited_guard_is_neither_held_nor_renewed_nor_released(place: &Place) {
    // In the parent these stay as they are, whatever the child does to its copies. They go on being renewed.
    let stays = "
        verify dropped
        verify unlocked
        verify exited
        taken dropped unlocked exited
        sleep 900
    ";
    place.plays(&format!(
        "
        lock dropped
        lock unlocked
        lock exited
        fork
            copy dropped
            copy unlocked
            copy exited
            drop dropped
            unlock unlocked => Lost
            taken dropped unlocked exited
        end
        join
        {stays}
        {stays}
        state dropped => held=true told=false verified=true
        state unlocked => held=true told=false verified=true
        state exited => held=true told=false verified=true
        unlock dropped
        unlock unlocked
        unlock exited
        "
    ));
}

fn forked_child_keeps_a_lock_of_its_own(place: &Place) {
    // Whatever is kept for the next guard is the parent's.
    place.plays(
        "
        lock warm-up
        unlock warm-up
        fork
            lock a
            hold-and-unlock a
        end
        join
        try a => false
        unlock a
        ",
    );
}

fn child_forked_while_other_threads_lock_can_lock(place: &Place) {
    place.succeeds("forks while its threads lock");
}

fn forked_child_that_drops_its_locker_releases_nothing(place: &Place) {
    place.plays_with_lasting_leases(
        "
        lock a
        fork
            drop-all
        end
        join
        verify a
        taken-elsewhere a
        unlock a
        try a
        unlock a
        ",
    );
}

fn tokens_and_lockers_of_a_forked_child_are_its_own(place: &Place) {
    place.succeeds("forks and stops");
}

/// All of a cluster, whose start takes long.
#[cfg(feature = "redis")]
fn forks_share_nothing(place: &Place) {
    inherited_guard_is_neither_held_nor_renewed_nor_released(place);
    forked_child_keeps_a_lock_of_its_own(place);
    child_forked_while_other_threads_lock_can_lock(place);
    inherited_guard_of_several_slots_is_a_copy(place);
    forked_child_that_drops_its_locker_releases_nothing(place);
}

#[cfg(feature = "redis")]
fn inherited_guard_of_several_slots_is_a_copy(place: &Place) {
    place.plays(
        "
        all a b c d
        fork
            copy a b c d
            taken a b c d
            all e f g
            verify e f g
            unlock e f g
            drop a b c d
        end
        join
        verify a b c d
        unlock a b c d
        ",
    );
}
