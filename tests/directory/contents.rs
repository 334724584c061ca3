//! What is in a directory: files and doors that are removed, replaced, or not what they should be.

use std::os::unix::fs::symlink;

use crosslock::{Error, LostReason};

use super::*;
use support::open_files_under;

#[test]
fn guard_whose_file_was_removed_is_lost_and_keeps_nothing_open() {
    let (directory, lock) = place();
    let guard = lock.lock("a").unwrap();
    // The directory, the lock's file and the door.
    assert_eq!(open_files_under(directory.path()), 3);
    fs::remove_file(file_of(directory.path(), "a")).unwrap();
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
    assert_eq!(guard.lost().recv().unwrap().reason, LostReason::NotOwner);
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    drop(lock);
    assert_eq!(open_files_under(directory.path()), 0);
}

#[test]
fn what_is_no_value_is_a_conflict_and_named() {
    let (directory, lock) = place();
    for name in ["link", "directory"] {
        let value = lock.mutex(name, 0).unwrap();
        *value.lock().unwrap() = 1;
        let path = file_of(directory.path(), name).with_extension("value");
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
        let directory = temp_dir();
        set_mode(directory.path(), mode);
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
    let outside = temp_dir();
    fs::remove_dir_all(&part).unwrap();
    symlink(outside.path(), &part).unwrap();
    assert!(matches!(lock.try_lock(&long), Err(Error::Conflict { .. })));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}
