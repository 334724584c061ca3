//! What is particular to `file:`: files that are removed, replaced, or not what they should be.
#![cfg(feature = "file")]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crosslock::{Error, Locker, LostReason};
use support::open_files_under;
use tempfile::TempDir;

fn place() -> (TempDir, Locker) {
    let directory = TempDir::new().expect("a directory");
    let lock = open(directory.path());
    (directory, lock)
}

fn open(directory: &Path) -> Locker {
    Locker::open(&format!("file://{}", directory.display())).expect("a directory to lock in")
}

/// Where the lock `name` is, for a name without odd characters.
fn file_of(directory: &TempDir, name: &str) -> PathBuf {
    directory.path().join(format!("crosslock+{name}.lock"))
}

#[test]
fn guard_whose_file_was_removed_is_lost_and_keeps_nothing_open() {
    let (directory, lock) = place();
    let guard = lock.lock("a").unwrap();
    assert_eq!(open_files_under(directory.path()), 1);
    fs::remove_file(file_of(&directory, "a")).unwrap();
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    assert_eq!(guard.lost().recv().unwrap().reason, LostReason::NotOwner);
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    assert_eq!(open_files_under(directory.path()), 0);
}

#[test]
fn file_that_was_moved_away_and_back_can_be_locked_again() {
    let (directory, lock) = place();
    let (file, aside) = (file_of(&directory, "a"), directory.path().join("aside"));
    let guard = lock.lock("a").unwrap();
    fs::rename(&file, &aside).unwrap();
    assert!(guard.verify().is_err());
    drop(guard);
    fs::rename(&aside, &file).unwrap();
    let guard = lock.try_lock("a").unwrap().expect("nobody has it");
    assert!(guard.abandoned());
}

#[test]
fn released_file_is_closed_and_stays() {
    let (directory, lock) = place();
    lock.lock("a").unwrap().unlock().unwrap();
    assert_eq!(open_files_under(directory.path()), 0);
    let counter = fs::read_to_string(file_of(&directory, "a")).unwrap();
    assert_eq!(counter.trim_end().parse::<u64>().unwrap() % 2, 0);
}

#[test]
fn what_is_no_lock_is_a_conflict_and_is_left_alone() {
    let (directory, lock) = place();
    let outside = TempDir::new().unwrap();
    let target = outside.path().join("target");
    fs::write(file_of(&directory, "text"), "not a counter\n").unwrap();
    fs::create_dir(file_of(&directory, "directory")).unwrap();
    symlink(&target, file_of(&directory, "link")).unwrap();
    let made = Command::new("mkfifo")
        .arg(file_of(&directory, "fifo"))
        .status()
        .unwrap();
    assert!(made.success());
    for name in ["text", "directory", "link", "fifo"] {
        match lock.try_lock(name) {
            Err(Error::Conflict { key, .. }) => assert!(key.ends_with(&format!("{name}.lock"))),
            other => panic!("{name}: {other:?}"),
        }
    }
    let text = fs::read_to_string(file_of(&directory, "text")).unwrap();
    assert_eq!(text, "not a counter\n");
    assert!(!target.exists());
    assert_eq!(open_files_under(directory.path()), 0);
}

#[test]
fn files_are_for_all_who_may_use_the_directory() {
    let long = "x".repeat(300);
    for mode in [0o700, 0o770, 0o777] {
        let directory = TempDir::new().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let lock = open(directory.path());
        drop((lock.lock("a").unwrap(), lock.lock(&long).unwrap()));
        for entry in fs::read_dir(directory.path()).unwrap() {
            let found = entry.unwrap().metadata().unwrap();
            let expected = if found.is_dir() { mode } else { mode & 0o666 };
            assert_eq!(found.permissions().mode() & 0o777, expected);
        }
    }
}

#[test]
fn directory_that_is_removed_while_open_is_an_error_and_not_made_anew() {
    let (directory, lock) = place();
    let path = directory.path().to_owned();
    directory.close().unwrap();
    assert!(matches!(lock.try_lock("a"), Err(Error::Engine { .. })));
    assert!(!path.exists());
}
