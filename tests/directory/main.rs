//! What becomes of locks in a directory when the processes that use it crash, when many wait, and when the directory or
//! what is in it isn't what it was.

mod containers;
mod contents;
mod descriptors;
mod files;
mod forks;
mod format;
mod limits;
mod links;
mod operators;
mod planted;
mod puppet;
mod strace;
mod trouble;
mod two_users;

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::files::file_of;
use crosslock::Locker;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, utimensat};
use rustix::io::Errno;
use support::wait_until;
use tempfile::TempDir;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// When whoever was ahead in the line has died, the next one has the lock by then.
const SOON: Duration = Duration::from_millis(300);

const URL: &str = "TEST_URL";

fn temp_dir() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    assert_eq!(names_in(path), [""; 0]);
    directory
}

fn url(directory: &Path) -> String {
    format!("file://{}", directory.display())
}

fn open(directory: &Path) -> Locker {
    Locker::open(&url(directory)).expect("a directory to lock in")
}

/// A directory, and a locker of it.
fn place() -> (TempDir, Locker) {
    let directory = temp_dir();
    let lock = open(directory.path());
    (directory, lock)
}

/// Whether this process may do that: without the right to there is nothing to try.
fn may(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("left out: only root can {what}");
    }
    is_root
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What is in a directory, sorted.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort_unstable();
    names
}

/// The doors that are there.
fn doors_in(directory: &Path) -> Vec<String> {
    let mut names = names_in(directory);
    names.retain(|name| name.starts_with(".door-"));
    names
}

/// Waits until somebody waits for a lock.
#[track_caller]
fn await_a_line(lock: &Locker, name: &str) {
    wait_until("a waiter", PATIENCE, || {
        !lock.inspect(name).unwrap().waiters.is_empty()
    });
}

/// Asserts that a process that comes much later leaves one file for each of these names, whatever those before it have
/// left.
#[track_caller]
fn assert_only_files_of(directory: &Path, names: &[&str]) {
    for name in names_in(directory) {
        let path = directory.join(name);
        match age(&path) {
            // A thread that was ending has removed it.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            aged => aged.unwrap(),
        }
        await_an_end(&path);
    }
    // Whoever opens the directory removes what the dead have left.
    drop(open(directory));
    let mut expected: Vec<_> = names
        .iter()
        .map(|name| format!("crosslock+{name}.lock"))
        .collect();
    expected.sort_unstable();
    assert_eq!(names_in(directory), expected);
}

/// Waits until nobody has a door open, if it is one. For a moment somebody may after its process has ended, or its
/// locker was dropped: another that writes to it, a renewal thread that looks for the last time, or a child that
/// doesn't execute its program yet.
#[track_caller]
fn await_an_end(path: &Path) {
    wait_until("the end at a door", PATIENCE, || {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let is_door = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_fifo());
        !is_door || rustix::fs::open(path, flags, Mode::empty()).err() == Some(Errno::NXIO)
    });
}

/// Makes a file look as if nobody had touched it for an hour.
fn age(path: &Path) -> io::Result<()> {
    let now = fs::symlink_metadata(path)?.mtime();
    let then = Timespec {
        tv_sec: now - 3600,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: then,
        last_modification: then,
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
