//! A lock is granted only when enough replicas have its lease.

use std::thread;

use super::*;

#[test]
fn free_lock_without_replicas_is_unavailable_and_left_free() {
    let set = Replicated::start(1);
    stop_replicas(&set);
    let locker = open(&set, 1);
    let error = locker.try_lock(NAME).unwrap_err();
    assert_too_few(&error);
    assert!(error.to_string().contains("check its replicas"), "{error}");
    assert_released(&set, 0);
    // The server itself is well.
    drop(held(&open(&set, 0)));
}

#[test]
fn taken_lock_is_none_also_without_replicas() {
    let set = Replicated::start(1);
    let guard = held(&open(&set, 1));
    stop_replicas(&set);
    assert!(open(&set, 1).try_lock(NAME).unwrap().is_none());
    drop(guard);
}

#[test]
fn lock_waits_until_a_replica_has_it() {
    let set = Replicated::start(1);
    stop_replicas(&set);
    let locker = open(&set, 1);
    let waiter = thread::spawn(move || locker.lock(NAME).unwrap());
    wait_until("some questions", PATIENCE, || {
        set.member(0).command_calls("wait") > 2
    });
    assert!(!waiter.is_finished());
    // The owner has the lock at the master, where nobody else gets it.
    assert!(open(&set, 0).try_lock(NAME).unwrap().is_none());
    continue_replicas(&set);
    let guard = waiter.join().unwrap();
    assert!(guard.is_held());
    assert_eq!(set.member(1).get(LOCK), set.member(0).get(LOCK));
    guard.unlock().unwrap();
    assert_released(&set, 0);
}

#[test]
fn one_of_two_replicas_is_enough_for_one_and_not_for_two() {
    let set = Replicated::start(2);
    set.member(2).stop();
    held(&open(&set, 1)).unlock().unwrap();
    assert_too_few(&open(&set, 2).try_lock(NAME).unwrap_err());
    assert_released(&set, 0);
    set.member(2).cont();
    let locker = builder(&set, 0, 2)
        .replica_timeout(PATIENCE)
        .io_timeout(2 * PATIENCE);
    held(&locker.build().unwrap()).unlock().unwrap();
}

#[test]
fn release_needs_no_replica() {
    let set = Replicated::start(1);
    let guard = held(&open(&set, 1));
    stop_replicas(&set);
    guard.unlock().unwrap();
    assert_released(&set, 0);
}

#[test]
fn several_names_are_taken_with_their_replicas_or_not_at_all() {
    let set = Replicated::start(1);
    let locker = open(&set, 1);
    let names = [NAME, "other"];
    locker.lock_all(&names).unwrap().unlock().unwrap();
    stop_replicas(&set);
    assert_too_few(&locker.try_lock_all(&names).unwrap_err());
    assert_released(&set, 0);
    assert_eq!(set.member(0).get("{crosslock:other}"), None);
}

#[test]
fn readers_and_permits_need_replicas_too() {
    let set = Replicated::start(1);
    let locker = open(&set, 1);
    stop_replicas(&set);
    assert_too_few(&locker.try_read(NAME).unwrap_err());
    assert_released(&set, 0);
    let permits = locker.semaphore("permits", 2).unwrap();
    assert_too_few(&permits.try_acquire().unwrap_err());
    wait_until("the permit to come back", PATIENCE, || {
        permits.available_permits().unwrap() == 2
    });
}

#[test]
fn scripts_that_the_server_lost_are_sent_anew() {
    let set = Replicated::start(1);
    let locker = open(&set, 1);
    let guard = held(&locker);
    set.member(0).query::<()>(&["SCRIPT", "FLUSH"]);
    verify(&guard);
    set.member(0).query::<()>(&["SCRIPT", "FLUSH"]);
    guard.unlock().unwrap();
    let guard = held(&locker);
    set.member(0).query::<()>(&["SCRIPT", "FLUSH"]);
    stop_replicas(&set);
    assert_too_few(&guard.verify().unwrap_err());
}
