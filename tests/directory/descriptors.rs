//! Processes that have no descriptors left.

use super::puppet::{Puppet, exhaust, puppet, recover};
use super::*;

fn start(directory: &Path) -> [Puppet; 2] {
    [(); 2].map(|()| puppet(directory))
}

#[test]
fn process_without_descriptors_takes_no_living_one_for_dead() {
    let directory = temp_dir();
    let [mut holder, mut poor] = start(directory.path());
    // Once with what it has open of the name, and once without.
    for name in ["a", "b"] {
        assert!(holder.ask(&format!("lock {name}")).starts_with("token"));
        if name == "a" {
            assert_eq!(poor.ask("try a"), "taken");
        }
        exhaust(&poor);
        for order in ["try", "try-for-2s", "try-read"] {
            let answer = poor.ask(&format!("{order} {name}"));
            assert!(!answer.starts_with("token"), "{order} {name}: {answer}");
        }
        assert_eq!(holder.ask("verify"), "ok");
        recover(&poor);
        assert_eq!(poor.ask(&format!("try {name}")), "taken");
        assert_eq!(holder.ask("unlock"), "ok");
        assert!(poor.ask(&format!("lock {name}")).ends_with("false"));
        assert_eq!(poor.ask("unlock"), "ok");
    }
}

#[test]
fn holders_and_waiters_that_lose_their_descriptors_go_on() {
    let directory = temp_dir();
    let [mut holder, mut waiter] = start(directory.path());
    let lock = open(directory.path());
    // It can't tell whom it has to tell: whoever waits looks by itself.
    assert!(holder.ask("lock a").starts_with("token"));
    waiter.tell("lock a");
    await_a_line(&lock, "a");
    exhaust(&holder);
    assert!(lock.try_lock("a").unwrap().is_none());
    assert_eq!(holder.ask("verify"), "ok");
    assert_eq!(holder.ask("unlock"), "ok");
    assert!(waiter.answer().ends_with("false"));
    // And a waiter that loses its own is served.
    recover(&holder);
    holder.tell("lock a");
    await_a_line(&lock, "a");
    exhaust(&holder);
    assert_eq!(waiter.ask("unlock"), "ok");
    assert!(holder.answer().ends_with("false"));
}

/// Where others may write, a door is made in a directory of its own.
#[test]
fn locker_is_opened_without_descriptors_and_leaves_nothing_of_a_door_that_could_not_be_made() {
    let directory = temp_dir();
    set_mode(directory.path(), 0o777);
    let mut poor = puppet(directory.path());
    let guard = open(directory.path()).lock("a").unwrap();
    assert_eq!(poor.ask("look a"), "1 holders");
    exhaust(&poor);
    assert_eq!(poor.ask("open"), "ok");
    for order in ["try a", "try-for-2s a"] {
        let answer = poor.ask(order);
        assert!(!answer.starts_with("token"), "{order}: {answer}");
    }
    let left = names_in(directory.path()).into_iter();
    assert_eq!(left.filter(|name| name.starts_with(".new-")).count(), 0);
    drop(guard);
    recover(&poor);
    assert!(poor.ask("try a").ends_with("false"));
}
