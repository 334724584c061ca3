//! Looks at locks, which take none.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{LockState, Locker, Result};

use super::*;

fn listed(lock: &Locker, prefix: &str) -> Vec<String> {
    let names = lock.list(prefix).unwrap().collect::<Result<Vec<_>>>();
    let mut names = names.unwrap();
    names.sort();
    names
}

#[test]
fn holder_of_another_process_is_seen_and_nobody_when_it_is_gone() {
    let (directory, lock) = place();
    let mut holder = Puppet::start(&url_of(&directory), Duration::from_secs(10));
    assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
    holder.lock("a");
    let token = holder.holding().token;
    let seen = lock.inspect("a").unwrap();
    assert_eq!(seen.state, LockState::Exclusive);
    let [one] = &seen.holders[..] else {
        panic!("{seen:?}");
    };
    let party = one.party.as_ref().unwrap();
    assert_eq!(
        (party.pid, party.label.as_deref()),
        (holder.pid(), Some("a puppet"))
    );
    assert_eq!(
        (one.token, one.remaining, seen.last_token),
        (Some(token), None, Some(token))
    );
    let before = one.held_for.unwrap();
    thread::sleep(Duration::from_millis(20));
    let later = lock.inspect("a").unwrap().holders[0].held_for.unwrap();
    assert!(
        later >= before + Duration::from_millis(20),
        "{before:?} {later:?}"
    );
    assert_eq!(listed(&lock, ""), ["a"]);
    holder.kill();
    let seen = lock.inspect("a").unwrap();
    assert_eq!(
        (seen.state, seen.last_token),
        (LockState::Free, Some(token))
    );
    assert!(seen.holders.is_empty() && listed(&lock, "").is_empty());
}

#[test]
fn those_who_wait_are_seen_in_their_order() {
    let (directory, lock) = place();
    let guard = lock.lock("a").unwrap();
    let pids = |lock: &Locker| {
        let seen = lock.inspect("a").unwrap().waiters;
        let parties = seen.into_iter().map(|waiter| waiter.party.unwrap().pid);
        parties.collect::<Vec<_>>()
    };
    let come = |count| {
        let mut waiter = Puppet::start(&url_of(&directory), PATIENCE);
        waiter.lock("a");
        wait_until("it to be seen", PATIENCE, || pids(&lock).len() == count);
        waiter
    };
    let (mut first, mut second) = (come(1), come(2));
    assert_eq!(pids(&lock), [first.pid(), second.pid()]);
    first.kill();
    // Nobody else has noticed yet.
    assert_eq!(pids(&lock), [second.pid()]);
    drop(guard);
    assert!(!second.holding().abandoned);
    assert!(pids(&lock).is_empty());
}

#[test]
fn panicked_holder_holds_nothing() {
    let (_directory, lock) = place();
    let panicked = thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let _guard = lock.lock("a").unwrap();
            panic!("on purpose");
        });
        holder.join()
    });
    assert!(panicked.is_err());
    assert_eq!(lock.inspect("a").unwrap().state, LockState::Free);
    assert!(lock.lock("a").unwrap().was_abandoned());
}

#[test]
fn lock_that_stays_taken_is_seen_as_kept() {
    let (_directory, lock) = place();
    keep(&lock, "a");
    let seen = lock.inspect("a").unwrap();
    match seen.state {
        LockState::Kept {
            remaining: Some(left),
            ..
        } => assert!(left > Duration::from_secs(200), "{left:?}"),
        other => panic!("{other:?}"),
    }
    assert!(seen.holders.is_empty());
    assert_eq!(listed(&lock, ""), ["a"]);
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
fn what_is_no_lock_is_not_listed_and_a_conflict_to_look_at() {
    let (directory, lock) = place();
    fs::write(file_of(&directory, "text"), "not a counter\n").unwrap();
    assert!(matches!(lock.inspect("text"), Err(Error::Conflict { .. })));
    assert!(matches!(
        lock.break_lock("text"),
        Err(Error::Conflict { .. })
    ));
    assert!(listed(&lock, "").is_empty());
}

#[test]
fn names_of_one_namespace_are_listed_however_long_and_odd() {
    let (directory, lock) = place();
    let url = format!("file://{}", directory.path().display());
    let other = Locker::builder(&url).namespace("other").build().unwrap();
    let long = "x".repeat(500);
    let names = ["a", "A/B \u{fc}", "%61", &long];
    let _guards = names.map(|name| lock.lock(name).unwrap());
    let _others = other.lock("a of another").unwrap();
    drop(lock.lock("free").unwrap());
    let mut expected = names.map(String::from);
    expected.sort();
    assert_eq!(listed(&lock, ""), expected);
    assert_eq!(listed(&lock, "xxx"), [long]);
    assert_eq!(listed(&other, "a"), ["a of another"]);
}

#[test]
fn ten_thousand_names_are_listed_in_a_moment() {
    let (_directory, lock) = place();
    for n in 0..10_000 {
        let guard = lock.lock(&n.to_string()).unwrap();
        guard.at_least_for(Duration::from_secs(600));
        guard.unlock().unwrap();
    }
    let _held = lock.lock("held").unwrap();
    let begun = Instant::now();
    let found = listed(&lock, "").len();
    println!("listed {found} in {:?}", begun.elapsed());
    assert_eq!(found, 10_001);
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
