//! Processes that have no descriptors left.

use super::puppet::Puppet;
use super::*;

fn start(directory: &Path) -> [Puppet; 2] {
    [(); 2].map(|()| Puppet::start(directory))
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
        poor.exhaust();
        for order in ["try", "try-for-2s", "try-read"] {
            let answer = poor.ask(&format!("{order} {name}"));
            assert!(!answer.starts_with("token"), "{order} {name}: {answer}");
        }
        assert_eq!(holder.ask("verify"), "ok");
        poor.recover();
        assert_eq!(poor.ask(&format!("try {name}")), "taken");
        assert_eq!(holder.ask("unlock"), "ok");
        assert!(poor.ask(&format!("lock {name}")).ends_with("false"));
        assert_eq!(poor.ask("unlock"), "ok");
    }
}

#[test]
fn holder_without_descriptors_keeps_its_lock_and_releases_it() {
    let directory = temp_dir();
    let [mut poor, mut other] = start(directory.path());
    assert!(poor.ask("lock a").starts_with("token"));
    poor.exhaust();
    assert_eq!(other.ask("try a"), "taken");
    assert_eq!(poor.ask("verify"), "ok");
    assert_eq!(poor.ask("unlock"), "ok");
    assert!(other.ask("try a").ends_with("false"));
}

#[test]
fn waiter_that_loses_its_descriptors_is_served() {
    let directory = temp_dir();
    let [mut holder, mut poor] = start(directory.path());
    let lock = open(directory.path());
    holder.ask("lock a");
    poor.tell("lock a");
    await_a_line(&lock, "a");
    poor.exhaust();
    assert_eq!(holder.ask("unlock"), "ok");
    assert!(poor.answer().ends_with("false"));
    assert_eq!(poor.ask("unlock"), "ok");
}

/// It can't tell whom it has to tell. Whoever waits looks by itself.
#[test]
fn waiter_is_served_though_the_one_that_releases_can_ring_nobody() {
    let directory = temp_dir();
    let [mut poor, mut waiter] = start(directory.path());
    let lock = open(directory.path());
    poor.ask("lock a");
    waiter.tell("lock a");
    await_a_line(&lock, "a");
    poor.exhaust();
    assert_eq!(poor.ask("unlock"), "ok");
    assert!(waiter.answer().ends_with("false"));
}

#[test]
fn locker_is_opened_without_descriptors() {
    let directory = temp_dir();
    let mut poor = Puppet::start(directory.path());
    poor.exhaust();
    assert_eq!(poor.ask("open"), "ok");
    assert_eq!(poor.ask("try a"), "Engine");
    poor.recover();
    assert!(poor.ask("try a").ends_with("false"));
}

/// Where others may write, a door is made in a directory of its own.
#[test]
fn nothing_is_left_of_a_door_that_could_not_be_made() {
    let directory = temp_dir();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let [mut holder, mut poor] = start(directory.path());
    assert!(holder.ask("lock a").starts_with("token"));
    assert_eq!(poor.ask("look a"), "1 holders");
    poor.exhaust();
    for order in ["try a", "try-for-2s a"] {
        let answer = poor.ask(order);
        assert!(!answer.starts_with("token"), "{order}: {answer}");
    }
    let left = fs::read_dir(directory.path()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let drafts: Vec<_> = left.filter(|name| name.starts_with(".new-")).collect();
    assert!(drafts.is_empty(), "{drafts:?}");
}
