//! Children of a holder, with what they inherit.

use rustix::process::{Pid, Signal, kill_process};

use super::puppet::puppet;
use super::*;
use support::Stopwatch;

/// A process that ends with the test.
struct Grandchild(Pid);

impl Grandchild {
    fn of(answer: &str) -> Self {
        Grandchild(Pid::from_raw(answer.parse().unwrap()).unwrap())
    }
}

impl Drop for Grandchild {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// What `order` starts, when the holder that was told has died.
fn orphan(directory: &Path, order: &str) -> Grandchild {
    let mut holder = puppet(directory);
    assert!(holder.ask("lock a").starts_with("token"));
    let grandchild = Grandchild::of(&holder.ask(order));
    holder.kill();
    grandchild
}

#[test]
fn program_that_a_holder_executes_keeps_nothing() {
    let directory = temp_dir();
    let _orphan = orphan(directory.path(), "execute");
    let stopwatch = Stopwatch::start();
    let lock = open(directory.path());
    let guard = lock
        .try_lock_for("a", PATIENCE)
        .unwrap()
        .expect("nobody has it");
    assert!(guard.was_abandoned());
    stopwatch.assert_within(SOON);
}

#[test]
fn child_that_inherits_the_files_of_a_lock_keeps_it_until_it_ends() {
    for order in ["execute-with-lock", "fork"] {
        let directory = temp_dir();
        let orphan = orphan(directory.path(), order);
        let lock = open(directory.path());
        assert!(lock.try_lock("a").unwrap().is_none(), "{order}");
        // One that waits is told of the end, too.
        let mut waiter = puppet(directory.path());
        waiter.tell("lock a");
        await_a_line(&lock, "a");
        assert!(!waiter.has_answered());
        let stopwatch = Stopwatch::start();
        drop(orphan);
        assert!(waiter.answer().ends_with("true"), "{order}");
        stopwatch.assert_within(SOON);
    }
}

#[test]
fn release_is_the_holders_whoever_has_copies_of_its_files() {
    for order in ["execute-with-lock", "fork"] {
        let directory = temp_dir();
        let mut holder = puppet(directory.path());
        holder.ask("lock a");
        let _orphan = Grandchild::of(&holder.ask(order));
        assert_eq!(holder.ask("unlock"), "ok");
        let lock = open(directory.path());
        assert!(lock.try_lock("a").unwrap().is_some(), "{order}");
        // Its door may be that of the next lock: the child keeps that one, too, but nobody's who lives.
        assert!(holder.ask("lock a").starts_with("token"));
        assert_eq!(holder.ask("unlock"), "ok");
        assert!(lock.try_lock("a").unwrap().is_some(), "{order}");
    }
}
