//! What operators do: they take locks from their holders, and look at locks, by which they take none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crosslock::{Error, LockState, Result};

use super::*;

#[test]
fn program_that_locks_the_file_ends_no_lease_and_lets_nobody_change_it() {
    let (directory, lock) = place();
    let guard = lock.lock("a").unwrap();
    let foreign = fs::File::open(file_of(directory.path(), "a")).unwrap();
    // The file is locked only while it is changed, so others may have it.
    foreign.try_lock().unwrap();
    assert_eq!(lock.inspect("a").unwrap().holders.len(), 1);
    let other = open(directory.path());
    // Each waits for it as long as a process that is stopped might need.
    thread::scope(|scope| {
        let refused = [
            scope.spawn(|| other.try_lock("a").map(drop)),
            scope.spawn(|| other.break_lock("a").map(drop)),
            scope.spawn(|| guard.verify()),
        ];
        for refused in refused.map(|one| one.join().unwrap()) {
            assert!(
                matches!(refused, Err(Error::Unavailable { .. })),
                "{refused:?}"
            );
        }
    });
    let watch = support::Stopwatch::start();
    let timeout = Duration::from_millis(100);
    assert!(other.try_lock_for("a", timeout).is_err());
    watch.assert_within(2 * timeout);
    assert!(guard.is_held());
    drop(foreign);
    guard.verify().unwrap();
    assert!(other.try_lock("a").unwrap().is_none());
}

#[test]
fn release_with_a_value_is_bounded_while_another_program_has_the_file_locked() {
    let (directory, lock) = place();
    let mutex = lock.mutex("a", 0).unwrap();
    mutex.update(|value| *value = 1).unwrap();
    let foreign = fs::File::open(file_of(directory.path(), "a")).unwrap();
    let mut guard = mutex.lock().unwrap();
    *guard = 2;
    foreign.lock().unwrap();
    let watch = support::Stopwatch::start();
    drop(guard);
    watch.assert_within(Duration::from_millis(500));
    drop(foreign);
    // It wasn't stored, and the release is made up for.
    assert_eq!(*mutex.lock().unwrap(), 1);
}

fn listed(lock: &Locker, prefix: &str) -> Vec<String> {
    let names = lock.list(prefix).unwrap().collect::<Result<Vec<_>>>();
    let mut names = names.unwrap();
    names.sort();
    names
}

#[test]
fn looks_let_no_attempt_fail() {
    let (directory, lock) = place();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let other = open(directory.path());
                while !done.load(Ordering::Relaxed) {
                    let holders = other.inspect("a").unwrap().holders;
                    let is_ours = |party: &crosslock::Party| party.pid == std::process::id();
                    let mut parties = holders.iter().map(|holder| holder.party.as_ref());
                    assert!(parties.all(|party| party.is_some_and(is_ours)));
                    listed(&other, "");
                }
            });
        }
        for _ in 0..2_000 {
            let guard = lock.try_lock("a").unwrap().expect("nobody takes it");
            assert!(!guard.was_abandoned());
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn looks_make_no_directory_and_the_first_change_does() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("new/er");
    let lock = open(&directory);
    for _ in 0..2 {
        assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
        assert_eq!(listed(&lock, ""), [""; 0]);
        assert_eq!(lock.break_lock("a").unwrap().len(), 0);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }
    let other = open(&directory);
    let guard = lock.lock("a").unwrap();
    assert_eq!(listed(&other, ""), ["a"]);
    assert!(other.try_lock("a").unwrap().is_none());
    // Whoever has seen it doesn't make it anew.
    drop(guard);
    fs::remove_dir_all(&directory).unwrap();
    assert!(lock.try_lock("a").is_err() && !directory.exists());
    // Whoever opens it then does.
    assert!(open(&directory).try_lock("a").unwrap().is_some());
}
