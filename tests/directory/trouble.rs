//! Directories that are removed, moved, full, or not to be written any more.

use crosslock::{Error, LostReason};

use super::puppet::{puppet, puppet_as};
use super::*;
use support::Child;

#[test]
fn lock_of_a_directory_that_was_removed_is_lost_and_can_be_had_when_it_is_there_again() {
    let place = temp_dir();
    let directory = place.path().join("locks");
    let lock = open(&directory);
    let guard = lock.lock("a").unwrap();
    let mut other = puppet(&directory);
    fs::remove_dir_all(&directory).unwrap();
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    assert_eq!(
        guard.lost().recv_timeout(PATIENCE).unwrap().reason,
        LostReason::NotOwner
    );
    for name in ["a", "b"] {
        let answer = other.ask(&format!("try {name}"));
        assert!(
            !answer.starts_with("token") && answer != "taken",
            "{answer}"
        );
    }
    assert!(!directory.exists());
    fs::create_dir(&directory).unwrap();
    let answer = other.ask("lock a");
    assert!(answer.ends_with("false"), "{answer}");
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    assert_eq!(other.ask("verify"), "ok");
    assert!(lock.try_lock("a").unwrap().is_none());
    assert_eq!(other.ask("unlock"), "ok");
    assert!(lock.try_lock("a").unwrap().is_some());
}

#[test]
fn lock_of_a_directory_that_was_moved_isnt_held_twice_and_isnt_stuck_when_it_is_back() {
    let place = temp_dir();
    let (directory, aside) = (place.path().join("locks"), place.path().join("aside"));
    let mut holder = puppet(&directory);
    assert!(holder.ask("lock a").starts_with("token"));
    fs::rename(&directory, &aside).unwrap();
    assert!(holder.ask("verify").starts_with("Lost"));
    assert!(holder.ask("unlock").starts_with("Lost"));
    fs::rename(&aside, &directory).unwrap();
    let lock = open(&directory);
    assert!(lock.try_lock_for("a", PATIENCE).unwrap().is_some());
}

/// Runs a test of this binary with a small disk of its own at `place`; without the right to make one there is nothing
/// to try.
fn on_a_small_disk(entry: &str) {
    if !may("mount a disk") {
        return;
    }
    let place = temp_dir();
    let place = place.path().to_str().unwrap();
    let mount = format!("mount -t tmpfs -o size=64k none {place} && exec \"$@\"");
    let program = ["unshare", "-m", "sh", "-c", &mount, "sh"];
    let mut child = Child::spawn_under(&program, entry, &[("TEST_PLACE", place)]);
    assert!(child.wait(2 * PATIENCE).success());
}

#[test]
fn disks_that_are_full_or_not_to_be_written_are_told_and_keep_nobody_from_releasing() {
    on_a_small_disk("fills its disk");
    on_a_small_disk("has a line that needs more room");
    on_a_small_disk("has a disk that can't be written");
}

#[test]
fn directory_in_which_nobody_may_write_any_more_keeps_nobody_from_looks_and_releases() {
    // The rights of a directory don't bind root.
    if !may("become another user") {
        return;
    }
    let directory = temp_dir();
    let directory = directory.path();
    set_mode(directory, 0o777);
    let [mut one, mut two] = [(); 2].map(|()| puppet_as(Some(61_236), directory));
    assert!(one.ask("lock a").starts_with("token"));
    set_mode(directory, 0o555);
    assert_eq!(one.ask("verify"), "ok");
    for uid in [61_236, 61_237] {
        let mut looker = puppet_as(Some(uid), directory);
        assert_eq!(looker.ask("look a"), "1 holders");
        assert_eq!(looker.ask("look b"), "0 holders");
    }
    // Whoever asks needs a door.
    for order in ["try a", "lock a", "try b"] {
        assert_eq!(two.ask(order), "Denied", "{order}");
    }
    assert_eq!(one.ask("unlock"), "ok");
    set_mode(directory, 0o777);
    assert!(two.ask("try a").ends_with("false"));
    assert_eq!(one.ask("try a"), "taken");
}
