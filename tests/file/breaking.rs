//! Locks that are taken from their holders.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crosslock::{Error, Event, LockState, Locker, LostReason, Observer};
use support::puppet::Puppet;
use tempfile::TempDir;

use super::format::doors_of;
use super::*;

/// Of leases that are looked at three times as often.
const LEASE: Duration = Duration::from_millis(300);

/// Puts something at a path that has to do with another.
type Plant = fn(&Path, &Path);

/// Does something when a call begins to wait.
struct Waits<F>(F);

impl<F: Fn() + Send + Sync> Observer for Waits<F> {
    fn event(&self, event: &Event<'_>) {
        if let Event::Waiting { .. } = event {
            (self.0)();
        }
    }
}

/// A locker, and what tells when a call of it begins to wait.
fn told_of_waits(directory: &TempDir) -> (Locker, Receiver<()>) {
    let (tell, told) = mpsc::channel();
    let waits = Waits(move || tell.send(()).expect("the test listens"));
    let builder = Locker::builder(&url_of(directory)).observer(Arc::new(waits));
    (builder.build().unwrap(), told)
}

/// A process that has the lock "a"; and its token.
fn holder(directory: &TempDir) -> (Puppet, u64) {
    let mut holder = Puppet::start(&url_of(directory), LEASE);
    holder.lock("a");
    let token = holder.holding().token;
    (holder, token)
}

/// What the directory holds but for locks and doors.
fn leftovers(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !name.ends_with(".lock") && !name.starts_with(".door-"))
        .collect()
}

/// The lines of a lock's file that tell whose lock was broken.
fn told_of_breaks(directory: &TempDir, name: &str) -> usize {
    let lines = lines_of(&file_of(directory, name));
    lines
        .iter()
        .filter(|line| line.starts_with("broken "))
        .count()
}

#[test]
fn stopped_holder_loses_its_lock_and_is_told_when_it_runs_again() {
    let (directory, lock) = place();
    let (mut holder, token) = holder(&directory);
    holder.stop();
    let broken = lock.break_lock("a").unwrap();
    assert_eq!(broken.len(), 1);
    let party = broken[0].party.as_ref().unwrap();
    assert_eq!((party.pid, broken[0].token), (holder.pid(), Some(token)));
    assert_eq!(party.label.as_deref(), Some("a puppet"));
    assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
    let next = lock.try_lock("a").unwrap().expect("it was broken");
    assert!(next.was_abandoned() && next.fencing_token() > token);
    assert_eq!(told_of_breaks(&directory, "a"), 1);
    holder.cont();
    assert_eq!(holder.ask("lost"), "Lost Broken");
    assert_eq!(holder.ask("unlock"), "Lost Broken");
    next.verify().unwrap();
    assert!(open(directory.path()).try_lock("a").unwrap().is_none());
    next.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().was_abandoned());
    assert_eq!(told_of_breaks(&directory, "a"), 0);
    assert_eq!(leftovers(&directory), [""; 0]);
}

#[test]
fn release_of_a_broken_lease_says_so_and_leaves_the_next_alone() {
    let (directory, lock) = place();
    let guard = lock.lock("a").unwrap();
    let other = open(directory.path());
    assert_eq!(other.break_lock("a").unwrap().len(), 1);
    let next = other.lock("a").unwrap();
    match guard.unlock() {
        Err(Error::Lost { reason, .. }) => assert_eq!(reason, LostReason::Broken),
        other => panic!("{other:?}"),
    }
    next.unlock().unwrap();
    let last = lock.lock("a").unwrap();
    assert!(!last.was_abandoned());
}

#[test]
fn those_who_wait_behind_a_stopped_holder_get_in_by_a_break() {
    let (directory, lock) = place();
    let (holder, token) = holder(&directory);
    let mut waiter = Puppet::start(&url_of(&directory), LEASE);
    waiter.lock("a");
    waiter.waits_in_line();
    holder.stop();
    let (other, waits) = told_of_waits(&directory);
    thread::scope(|scope| {
        let timed = scope.spawn(|| {
            let guard = other.try_lock_for("a", PATIENCE).unwrap();
            guard.expect("it is free at the end").fencing_token()
        });
        waits.recv_timeout(PATIENCE).unwrap();
        assert_eq!(lock.break_lock("a").unwrap().len(), 1);
        let holding = waiter.holding();
        assert!(holding.token > token);
        waiter.unlock();
        assert!(timed.join().unwrap() > token);
    });
    holder.cont();
}

#[test]
fn break_of_a_lock_that_nobody_has_does_nothing() {
    let (directory, lock) = place();
    assert!(lock.break_lock("a").unwrap().is_empty());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let token = lock.lock("a").unwrap().fencing_token();
    let before = fs::read(file_of(&directory, "a")).unwrap();
    assert!(lock.break_lock("a").unwrap().is_empty());
    assert_eq!(fs::read(file_of(&directory, "a")).unwrap(), before);
    let next = lock.lock("a").unwrap();
    assert!(!next.was_abandoned() && next.fencing_token() > token);
}

#[test]
fn break_of_a_crashed_holders_lock_does_nothing() {
    let (directory, lock) = place();
    let (mut holder, token) = holder(&directory);
    holder.kill();
    assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
    assert!(lock.break_lock("a").unwrap().is_empty());
    let next = lock.lock("a").unwrap();
    assert!(next.was_abandoned() && next.fencing_token() > token);
}

#[test]
fn break_ends_the_time_for_which_a_lock_stays_taken() {
    let (directory, lock) = place();
    keep(&lock, "a");
    let (other, waits) = told_of_waits(&directory);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("a").unwrap());
        waits.recv_timeout(PATIENCE).unwrap();
        assert!(lock.break_lock("a").unwrap().is_empty());
        assert!(!waiter.join().unwrap().was_abandoned());
    });
}

#[test]
fn one_of_several_that_break_at_once_breaks() {
    let (directory, _) = place();
    for _ in 0..10 {
        let (holder, token) = holder(&directory);
        holder.stop();
        let start = Barrier::new(4);
        let broken: usize = thread::scope(|scope| {
            let breaks = || {
                let lock = open(directory.path());
                start.wait();
                lock.break_lock("a").unwrap().len()
            };
            let all = [(); 4].map(|()| scope.spawn(breaks));
            all.map(|one| one.join().unwrap()).into_iter().sum()
        });
        assert_eq!(broken, 1);
        assert!(open(directory.path()).lock("a").unwrap().fencing_token() > token);
        assert_eq!(told_of_breaks(&directory, "a"), 1);
        // It won't hear of it.
        drop(holder);
    }
    drop(open(directory.path()).lock("a").unwrap());
    assert_eq!(told_of_breaks(&directory, "a"), 0);
    assert_eq!(leftovers(&directory), [""; 0]);
}

#[test]
fn program_that_locks_the_file_ends_no_lease_and_lets_nobody_change_it() {
    let (directory, lock) = place();
    let guard = lock.lock("a").unwrap();
    let foreign = fs::File::open(file_of(&directory, "a")).unwrap();
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
fn break_of_one_of_several_names_ends_the_lease_of_all() {
    let (directory, lock) = place();
    let lock = Locker::builder(&url_of(&directory))
        .ttl(LEASE)
        .build()
        .unwrap_or(lock);
    let guard = lock.lock_all(&["a", "b"]).unwrap();
    assert_eq!(open(directory.path()).break_lock("b").unwrap().len(), 1);
    let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
    assert_eq!(lost.reason, LostReason::Broken);
    let other = open(directory.path());
    assert!(other.lock("b").unwrap().was_abandoned());
    // What the other name protects may still be in use.
    assert!(other.try_lock("a").unwrap().is_none());
    assert!(matches!(guard.unlock(), Err(Error::Lost { reason, .. }) if reason == lost.reason));
    assert!(!other.lock("a").unwrap().was_abandoned());
}

#[test]
fn what_others_have_planted_in_the_place_of_a_door_is_not_followed() {
    let (directory, lock) = place();
    let outside = TempDir::new().unwrap();
    let target = outside.path().join("target");
    let kinds: [(&str, Plant); 4] = [
        ("link", |path, target| symlink(target, path).unwrap()),
        ("file", |path, _| fs::write(path, "precious").unwrap()),
        ("directory", |path, _| fs::create_dir(path).unwrap()),
        ("socket", |path, _| drop(UnixListener::bind(path).unwrap())),
    ];
    for (name, plant) in kinds {
        fs::write(&target, "precious").unwrap();
        let (mut holder, _) = holder(&directory);
        let door = doors_of(&directory, "a").remove(0);
        fs::remove_file(&door).unwrap();
        plant(&door, &target);
        // Its door is gone, and so is its lease.
        let next = lock.try_lock("a").unwrap();
        assert!(next.expect(name).was_abandoned(), "{name}");
        assert_eq!(holder.ask("lost"), "Lost NotOwner", "{name}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(open(directory.path()).break_lock("a").unwrap().len(), 0);
    }
}

#[test]
fn user_who_may_write_in_a_sticky_directory_can_break() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (directory, lock) = place();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o1777)).unwrap();
    let guard = lock.lock("a").unwrap();
    let mut other = Puppet::start_as(Some(60_123), &url_of(&directory));
    assert_eq!(other.ask("look a"), "1 holders");
    assert_eq!(other.ask("try a"), "taken", "its holder lives");
    assert_eq!(other.ask("break a"), "broke 1");
    other.tell("try a");
    assert!(other.holding().abandoned);
    other.unlock();
    drop(other);
    assert!(matches!(
        guard.unlock(),
        Err(Error::Lost {
            reason: LostReason::Broken,
            ..
        })
    ));
    assert!(lock.lock("a").is_ok());
    assert_eq!(leftovers(&directory), [""; 0]);
}

#[cfg(feature = "value")]
#[test]
fn release_with_a_value_is_bounded_while_another_program_has_the_file_locked() {
    let (directory, lock) = place();
    let mutex = lock.mutex("a", 0).unwrap();
    mutex.update(|value| *value = 1).unwrap();
    let foreign = fs::File::open(file_of(&directory, "a")).unwrap();
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

#[test]
fn lease_that_is_found_broken_when_it_is_downgraded_leaves_no_door() {
    let (directory, lock) = place();
    // It doesn't look by itself meanwhile.
    let guard = lock.write("a").unwrap();
    let mut breaker = Puppet::start(&url_of(&directory), LEASE);
    assert_eq!(breaker.ask("break a"), "broke 1");
    match guard.downgrade() {
        Err(Error::Lost { reason, .. }) => assert_eq!(reason, LostReason::Broken),
        other => panic!("{other:?}"),
    }
    assert_eq!(doors(&directory), [""; 0].map(PathBuf::from));
}
