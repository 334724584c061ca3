//! Disks that are full, or can't be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use crosslock::Error;

use super::*;
use support::puppet::Puppet;
use support::wait_until;

fn url(directory: &Path) -> String {
    format!("file://{}", directory.display())
}

fn open(directory: &Path) -> Locker {
    Locker::open(&url(directory)).expect("a directory to lock in")
}

fn small_disk() -> PathBuf {
    let place = PathBuf::from(arg("TEST_PLACE"));
    assert!(place.is_dir());
    place
}

fn fill(place: &Path) -> PathBuf {
    let file = place.join("filling");
    let full = fs::write(&file, vec![b'x'; 1 << 20]);
    assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    file
}

/// A locker of its own has a place of its own in the line.
fn waiter(lock: Locker) -> JoinHandle<Option<()>> {
    thread::spawn(move || {
        let timed = lock.try_lock_for("a", Duration::from_secs(5));
        timed.ok().flatten().map(drop)
    })
}

pub(crate) fn fill_it() {
    let disk = small_disk();
    let directory = disk.join("locks");
    let lock = open(&directory);
    let guard = lock.lock("a").unwrap();
    let mut other = Puppet::start_as(None, &url(&directory));
    assert_eq!(other.ask("try a"), "taken");
    let filling = fill(&disk);
    // What is there can be used, and what needs room is refused.
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert!(other.ask("lock a").starts_with("token"));
    assert!(lock.try_lock("a").unwrap().is_none());
    assert_eq!(other.ask("unlock"), "ok");
    assert!(matches!(lock.try_lock("b"), Err(Error::Engine { .. })));
    assert!(matches!(lock.try_lock("b"), Err(Error::Engine { .. })));
    fs::remove_file(filling).unwrap();
    let guard = lock.try_lock("b").unwrap().expect("nobody has it");
    assert_eq!(other.ask("try b"), "taken");
    guard.unlock().unwrap();
}

pub(crate) fn need_more_room() {
    let disk = small_disk();
    let directory = disk.join("locks");
    let lock = open(&directory);
    let guard = lock.lock("a").unwrap();
    let filling = fill(&disk);
    // Each says some 150 bytes, so that a page isn't enough for all.
    let mut waiters: Vec<_> = (0..40).map(|_| waiter(open(&directory))).collect();
    wait_until("a line that is full", PATIENCE, || {
        waiters.iter().any(JoinHandle::is_finished)
            || lock.inspect("a").unwrap().waiters.len() == 40
    });
    guard.verify().unwrap();
    guard.unlock().unwrap();
    // Those that found room are served.
    let served = waiters
        .drain(..)
        .filter_map(|waiter| waiter.join().unwrap())
        .count();
    assert!(served > 0);
    fs::remove_file(filling).unwrap();
    assert!(lock.try_lock("a").unwrap().is_some());
}

pub(crate) fn write_in_vain() {
    let disk = small_disk();
    drop(open(&disk).lock("a").unwrap());
    let mut mount = Command::new("mount");
    let mounted = mount.args(["-o", "remount,ro"]).arg(&disk).status();
    assert!(mounted.unwrap().success());
    match Locker::open(&url(&disk)) {
        Err(Error::Denied { .. }) => {}
        Ok(lock) => {
            for refused in [lock.try_lock("a"), lock.lock("a").map(Some)] {
                assert!(matches!(refused, Err(Error::Denied { .. })), "{refused:?}");
            }
        }
        Err(e) => panic!("{e}"),
    }
}
