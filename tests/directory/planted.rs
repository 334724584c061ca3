//! What somebody who may write in the directory puts in the place of a lock's file, or of a door.

use std::os::unix::fs::symlink;
use std::process::Command;

use crosslock::Error;
use rustix::fs::OFlags;

use super::puppet::{Puppet, puppet};
use super::*;
use support::Stopwatch;

const KINDS: [&str; 6] = [
    "fifo",
    "read fifo",
    "full fifo",
    "link",
    "directory",
    "file",
];

/// What is at a door then: also nothing.
fn at_a_door() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().chain(["nothing"])
}

/// Puts something at a path, from which the directory `outside` must not change. What is returned keeps it as it is.
fn plant(kind: &str, path: &Path, outside: &Path) -> Option<fs::File> {
    match kind {
        "link" => symlink(outside.join("target"), path).unwrap(),
        "directory" => fs::create_dir(path).unwrap(),
        "file" => fs::write(path, "mine\n").unwrap(),
        "nothing" => {}
        _ => return plant_fifo(kind, path),
    }
    None
}

fn plant_fifo(kind: &str, path: &Path) -> Option<fs::File> {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
    if kind == "fifo" {
        return None;
    }
    let mut options = fs::OpenOptions::new();
    let reader = options.read(true).write(true).open(path).unwrap();
    if kind == "full fifo" {
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
        while std::io::Write::write(&mut &reader, &[0; 4096]).is_ok() {}
    }
    Some(reader)
}

/// What is there of a planted thing.
fn content(path: &Path) -> String {
    let found = fs::symlink_metadata(path).unwrap();
    format!("{:?} {}", found.file_type(), found.ino())
}

#[test]
fn what_is_planted_at_a_locks_path_is_refused_and_left_alone() {
    for kind in KINDS {
        let (directory, outside) = (temp_dir(), temp_dir());
        let path = file_of(directory.path(), "a");
        let _reader = plant(kind, &path, outside.path());
        let before = content(&path);
        let lock = open(directory.path());
        let stopwatch = Stopwatch::start();
        for refused in [
            lock.try_lock("a"),
            lock.lock("a").map(Some),
            lock.try_read("a"),
        ] {
            match refused {
                Err(Error::Conflict { key, .. }) => assert_eq!(Path::new(&key), path, "{kind}"),
                other => panic!("{kind}: {other:?}"),
            }
        }
        stopwatch.assert_within(SOON);
        assert_eq!(content(&path), before, "{kind}");
        assert_eq!(names_in(outside.path()), [""; 0], "{kind}");
        // Nobody else is hindered.
        assert!(lock.try_lock("b").unwrap().is_some());
    }
}

/// The one door that is there now and wasn't before.
fn new_door(directory: &Path, before: &[String]) -> PathBuf {
    let mut doors = doors_in(directory);
    doors.retain(|door| !before.contains(door));
    assert_eq!(doors.len(), 1, "{doors:?}");
    directory.join(&doors[0])
}

#[test]
fn waiter_is_served_whatever_is_planted_at_its_door() {
    for kind in at_a_door() {
        let (directory, outside) = (temp_dir(), temp_dir());
        let lock = open(directory.path());
        let guard = lock.lock("a").unwrap();
        let before = doors_in(directory.path());
        let mut waiter = puppet(directory.path());
        waiter.tell("lock a");
        await_a_line(&lock, "a");
        let door = new_door(directory.path(), &before);
        fs::remove_file(&door).unwrap();
        let reader = plant(kind, &door, outside.path());
        let stopwatch = Stopwatch::start();
        guard.unlock().unwrap();
        stopwatch.assert_within(SOON);
        let answer = waiter.answer();
        assert!(
            answer.starts_with("token") && answer.ends_with("false"),
            "{kind}: {answer}"
        );
        is_told(&lock, &mut waiter, kind);
        drop(reader);
        assert!(lock.try_lock("a").unwrap().is_some(), "{kind}");
        assert_eq!(names_in(outside.path()), [""; 0], "{kind}");
    }
}

/// Whoever has a lock, and no door of its own any more, counts as dead: it is told as soon as another has the lock.
fn is_told(lock: &Locker, holder: &mut Puppet, kind: &str) {
    match lock.try_lock("a").unwrap() {
        Some(guard) => {
            assert!(holder.ask("verify").starts_with("Lost"), "{kind}");
            assert!(holder.ask("unlock").starts_with("Lost"), "{kind}");
            guard.verify().unwrap();
        }
        // It has another door, or somebody has what is there open, and may be the holder.
        None => {
            holder.ask("unlock");
        }
    }
}

/// It counts as dead: its lock is another's, and it is told.
#[test]
fn holder_whose_door_was_replaced_is_told_as_soon_as_another_has_its_lock() {
    for kind in at_a_door() {
        let (directory, outside) = (temp_dir(), temp_dir());
        let lock = open(directory.path());
        drop(lock.lock("b").unwrap());
        let before = doors_in(directory.path());
        let mut holder = puppet(directory.path());
        holder.ask("lock a");
        let door = new_door(directory.path(), &before);
        fs::remove_file(&door).unwrap();
        let reader = plant(kind, &door, outside.path());
        let taken = lock.try_lock("a").unwrap();
        assert!(taken.is_some() || kind.ends_with(" fifo"), "{kind}");
        drop(taken);
        is_told(&lock, &mut holder, kind);
        drop(reader);
        assert!(lock.try_lock("a").unwrap().is_some(), "{kind}");
        assert_eq!(names_in(outside.path()), [""; 0], "{kind}");
    }
}
