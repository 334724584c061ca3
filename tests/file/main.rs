//! What is particular to `file:`: files and doors, and those that are removed, replaced, or not what they should be.
#![cfg(feature = "file")]

mod format;
mod operators;
#[path = "../directory/written.rs"]
mod written;

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crosslock::{Error, Locker, LostReason};
use support::puppet::Puppet;
use support::{open_files_under, wait_until};
use tempfile::TempDir;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn url_of(directory: &TempDir) -> String {
    format!("file://{}", directory.path().display())
}

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

/// The doors that the directory has.
fn doors(directory: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.path()).unwrap();
    let entries = entries.map(|entry| entry.unwrap());
    let doors = entries.filter(|entry| entry.file_type().unwrap().is_fifo());
    doors.map(|entry| entry.path()).collect()
}

#[test]
fn guard_whose_file_was_removed_is_lost_and_keeps_nothing_open() {
    let (directory, lock) = place();
    let guard = lock.lock("a").unwrap();
    // The directory, the lock's file and the door.
    assert_eq!(open_files_under(directory.path()), 3);
    fs::remove_file(file_of(&directory, "a")).unwrap();
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    assert_eq!(guard.lost().recv().unwrap().reason, LostReason::NotOwner);
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    drop(lock);
    assert_eq!(open_files_under(directory.path()), 0);
}

#[test]
fn file_stays_when_nobody_uses_it_and_doors_do_not() {
    let (directory, lock) = place();
    lock.lock("a").unwrap().unlock().unwrap();
    let other = open(directory.path());
    let guard = other.lock("b").unwrap();
    // The next lock uses the door of the one before.
    assert_eq!(doors(&directory).len(), 1);
    drop((lock, other));
    assert_eq!(doors(&directory).len(), 1);
    drop(guard);
    assert_eq!(open_files_under(directory.path()), 0);
    assert!(doors(&directory).is_empty());
    let entries = fs::read_dir(directory.path()).unwrap();
    assert_eq!(entries.count(), 2);
}

/// Releases `name` at once, to stay taken for longer than any test runs.
fn keep(lock: &Locker, name: &str) {
    let guard = lock.lock(name).unwrap();
    guard.at_least_for(Duration::from_secs(300));
    guard.unlock().unwrap();
    assert!(lock.try_lock(name).unwrap().is_none());
}

#[cfg(feature = "value")]
#[test]
fn what_is_no_value_is_a_conflict_and_named() {
    let (directory, lock) = place();
    for name in ["link", "directory"] {
        let value = lock.mutex(name, 0).unwrap();
        *value.lock().unwrap() = 1;
        let path = file_of(&directory, name).with_extension("value");
        fs::remove_file(&path).unwrap();
        match name {
            "link" => symlink("/nowhere", &path).unwrap(),
            _ => fs::create_dir(&path).unwrap(),
        }
        for outcome in [value.peek().map(drop), value.lock().map(drop)] {
            match outcome {
                Err(Error::Conflict { key, .. }) => assert_eq!(Path::new(&key), path),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

#[test]
fn files_are_for_all_who_may_write_in_the_directory() {
    let long = "x".repeat(300);
    for (mode, file, part) in [
        (0o700, 0o600, 0o700),
        (0o750, 0o600, 0o700),
        (0o755, 0o600, 0o700),
        (0o770, 0o660, 0o770),
        (0o733, 0o666, 0o777),
        (0o777, 0o666, 0o777),
    ] {
        let directory = TempDir::new().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        let lock = open(directory.path());
        drop((lock.lock("a").unwrap(), lock.lock(&long).unwrap()));
        let entries: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(entries.len(), 4, "two names, two doors, and no draft");
        for entry in entries {
            let found = entry.unwrap().metadata().unwrap();
            let expected = if found.is_dir() { part } else { file };
            assert_eq!(found.permissions().mode() & 0o777, expected, "{mode:o}");
        }
    }
}

#[test]
fn link_in_the_place_of_a_directory_is_a_conflict() {
    let (directory, lock) = place();
    let long = "x".repeat(300);
    drop(lock.lock(&long).unwrap());
    let entries = fs::read_dir(directory.path()).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let part = paths.find(|path| path.is_dir()).unwrap();
    let outside = TempDir::new().unwrap();
    fs::remove_dir_all(&part).unwrap();
    symlink(outside.path(), &part).unwrap();
    assert!(matches!(lock.try_lock(&long), Err(Error::Conflict { .. })));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}
