//! Locks that are taken from their holders.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use crosslock::{Error, LockState, Locker, LostReason};
use support::puppet::Puppet;
use tempfile::TempDir;

use super::puppet::Waits;
use super::*;

/// Of leases that are looked at three times as often.
const LEASE: Duration = Duration::from_millis(300);

fn url_of(directory: &TempDir) -> String {
    format!("file://{}", directory.path().display())
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

/// What the directory holds, but for locks and what all that break share.
fn leftovers(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| !name.ends_with(".lock") && name != ".breaking")
        .collect()
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
    assert!(next.abandoned() && next.fencing_token() > token);
    holder.cont();
    holder.tell("lost");
    assert_eq!(holder.answer("lost"), "Broken");
    holder.tell("unlock");
    assert_eq!(holder.answer("unlocked"), "Broken");
    next.verify().unwrap();
    assert!(open(directory.path()).try_lock("a").unwrap().is_none());
    next.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().abandoned());
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
    assert!(!last.abandoned());
}

#[test]
fn those_who_wait_behind_a_stopped_holder_get_in_by_a_break() {
    let (directory, lock) = place();
    let (holder, token) = holder(&directory);
    let mut waiter = Puppet::start(&url_of(&directory), LEASE);
    waiter.lock("a");
    waiter.answer("waits");
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
    assert!(!next.abandoned() && next.fencing_token() > token);
}

#[test]
fn break_of_a_crashed_holders_lock_does_nothing() {
    let (directory, lock) = place();
    let (mut holder, token) = holder(&directory);
    holder.kill();
    assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
    assert!(lock.break_lock("a").unwrap().is_empty());
    let next = lock.lock("a").unwrap();
    assert!(next.abandoned() && next.fencing_token() > token);
}

#[test]
fn break_ends_the_time_for_which_a_lock_stays_taken() {
    let (directory, lock) = place();
    keep(&directory, &lock, "a");
    let (other, waits) = told_of_waits(&directory);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("a").unwrap());
        waits.recv_timeout(PATIENCE).unwrap();
        assert!(lock.break_lock("a").unwrap().is_empty());
        assert!(!waiter.join().unwrap().abandoned());
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
        holder.cont();
    }
    assert_eq!(leftovers(&directory), [""; 0]);
}

#[test]
fn program_that_is_not_ours_loses_a_file_that_it_has_locked() {
    let (directory, lock) = place();
    drop(lock.lock("a").unwrap());
    let foreign = fs::File::open(file_of(&directory, "a")).unwrap();
    foreign.lock().unwrap();
    assert!(lock.try_lock("a").unwrap().is_none());
    let seen = lock.inspect("a").unwrap();
    assert_eq!((seen.state, seen.holders.len()), (LockState::Exclusive, 1));
    assert_eq!(
        (&seen.holders[0].party, seen.holders[0].token),
        (&None, None)
    );
    assert_eq!(lock.break_lock("a").unwrap(), seen.holders);
    let guard = lock.try_lock("a").unwrap().expect("it was broken");
    assert!(!guard.abandoned(), "it was released in order before");
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
    assert!(other.lock("b").unwrap().abandoned());
    // What the other name protects may still be in use.
    assert!(other.try_lock("a").unwrap().is_none());
    assert!(matches!(guard.unlock(), Err(Error::Lost { reason, .. }) if reason == lost.reason));
    assert!(!other.lock("a").unwrap().abandoned());
}

#[test]
fn links_that_others_have_planted_are_not_followed() {
    let (directory, lock) = place();
    let outside = TempDir::new().unwrap();
    let target = outside.path().join("target");
    fs::write(&target, "precious").unwrap();
    let guard = lock.lock("a").unwrap();
    let aside = file_of(&directory, "a").with_extension("broken");
    symlink(&target, &aside).unwrap();
    symlink(&target, directory.path().join(".breaking")).unwrap();
    let other = open(directory.path());
    assert!(other.break_lock("a").is_err());
    guard.verify().unwrap();
    fs::remove_file(directory.path().join(".breaking")).unwrap();
    assert_eq!(other.break_lock("a").unwrap().len(), 1);
    assert!(guard.verify().is_err());
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    assert_eq!(leftovers(&directory), [""; 0]);
}

#[test]
fn user_who_may_not_replace_the_file_can_not_break() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (directory, lock) = place();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o1777)).unwrap();
    let guard = lock.lock("a").unwrap();
    let args = [("TEST_URL", url_of(&directory))];
    let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut child = support::Child::spawn_as(Some(60_123), "breaking::child_may_not_break", &args);
    assert!(child.wait(PATIENCE).success());
    guard.verify().unwrap();
    assert!(lock.try_lock("a").unwrap().is_none());
    assert_eq!(leftovers(&directory), [""; 0]);
}

#[test]
fn child_may_not_break() {
    if !support::is_child("breaking::child_may_not_break") {
        return;
    }
    let lock = Locker::open(&std::env::var("TEST_URL").unwrap()).unwrap();
    assert_eq!(lock.inspect("a").unwrap().holders.len(), 1);
    let broken = lock.break_lock("a");
    assert!(matches!(broken, Err(Error::Denied { .. })), "{broken:?}");
}

#[cfg(feature = "value")]
#[test]
fn release_with_a_value_is_bounded_while_a_process_that_breaks_is_stopped() {
    let (directory, lock) = place();
    let mutex = lock.mutex("a", 0).unwrap();
    mutex.update(|value| *value = 1).unwrap();
    let turn = fs::File::options()
        .read(true)
        .write(true)
        .open(directory.path().join(".breaking"))
        .unwrap();
    turn.lock().unwrap();
    let mut guard = mutex.lock().unwrap();
    *guard = 2;
    let watch = support::Stopwatch::start();
    drop(guard);
    watch.assert_within(Duration::from_millis(500));
    drop(turn);
    // Whether it was stored isn't known, but the lock is free.
    assert_eq!(*mutex.lock().unwrap(), 1);
}
