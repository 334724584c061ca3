//! Processes that are killed at each system call of what they do: whatever one leaves, the next understands.
//!
//! strace kills them when they enter a call, so that it isn't made. It counts the calls of each thread, each kind for
//! itself. So a first child shows which kinds there are, and for each one child after the other is killed at its first,
//! its second, ... until one ends by itself. Calls that only the process itself can notice are left out: to die there
//! is to die at the next one that others notice.

mod traced;

use std::fs;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crosslock::{Error, LockGuard, Locker, LostReason};

use self::traced::{Traced, kinds_in};
use super::*;
use support::{Stopwatch, wait_until};

const PLAY: &str = "TEST_PLAY";

/// Of the children's leases.
const TTL: Duration = Duration::from_millis(500);

/// What a child does, what the test does meanwhile, and how the names are taken afterwards.
struct Play {
    name: &'static str,
    names: &'static [&'static str],
    /// Whether the lock is held by the test when the child comes, until the child waits in line, or has ended.
    is_held: bool,
    /// Whether somebody waits for the child's end when it is killed.
    is_waited_for: bool,
    /// Whether a holder that dies leaves an abandoned lock.
    is_exclusive: bool,
}

const ALONE: Play = Play {
    name: "lock",
    names: &["a"],
    is_held: false,
    is_waited_for: false,
    is_exclusive: true,
};

/// One test for each, since they take long: what the child does, and how it differs from `ALONE`.
macro_rules! killed_at_every_call {
    ($($test:ident: $name:literal $(, $field:ident: $value:expr)*;)+) => {$(
        #[test]
        fn $test() {
            let play = Play {
                name: $name,
                $($field: $value,)*
                ..ALONE
            };
            play.at_every_call();
        }
    )+};
}

killed_at_every_call! {
    one_killed_by_strace_while_it_locks_or_unlocks_hinders_nobody: "lock";
    one_killed_by_strace_is_followed_by_a_waiter: "lock", is_waited_for: true;
    one_killed_by_strace_while_it_waits_hinders_nobody: "lock", is_held: true;
    one_killed_by_strace_while_it_gives_up_hinders_nobody: "timed", is_held: true;
    one_killed_by_strace_with_several_locks_hinders_nobody: "lock_all", names: &["a", "b", "c"];
    one_killed_by_strace_while_it_downgrades_hinders_nobody: "downgrade";
    one_killed_by_strace_while_it_reads_hinders_nobody: "read", is_exclusive: false;
    one_killed_by_strace_while_it_has_permits_hinders_nobody: "permits", is_exclusive: false;
    one_killed_by_strace_while_it_stores_a_value_hinders_nobody: "value";
    one_killed_by_strace_while_it_passes_its_lock_on_hinders_nobody: "pass";
    one_killed_by_strace_while_it_breaks_a_lock_hinders_nobody: "break", is_held: true;
}

/// The calls of a child that stores a value.
fn calls_that_store() -> String {
    let (directory, elsewhere) = (temp_dir(), temp_dir());
    let log = elsewhere.path().join("log");
    let mut child = Traced::start("value", directory.path(), None, &log);
    child.tell("go");
    assert!(child.end());
    child.rest();
    fs::read_to_string(&log).unwrap()
}

#[test]
fn draft_of_a_value_is_made_by_a_call_of_which_strace_shows_that_nobody_else_may_open_it() {
    let calls = calls_that_store();
    let is_made = |line: &&str| line.contains(".value-draft") && line.contains("O_CREAT");
    let made = calls.lines().find(is_made).expect("it is made");
    // Another thread's call may be shown before this one's end.
    assert!(made.contains(", 0600"), "{made}");
}

/// Otherwise a power cut may bring the old value back, although the lock was released.
#[test]
fn value_is_on_the_disk_under_its_name_before_its_lock_is_released_as_strace_shows() {
    let calls = calls_that_store();
    let is_named = |line: &&str| line.contains("rename") && line.contains(".value-draft");
    let named = calls.lines().skip_while(|line| !is_named(line));
    let mut before = named.take_while(|line| !line.contains("flock("));
    assert!(before.any(|line| line.contains("fsync(")), "{calls}");
}

impl Play {
    fn at_every_call(&self) {
        let started = Instant::now();
        let elsewhere = temp_dir();
        let log = elsewhere.path().join("log");
        assert!(self.round(None, &log), "it wasn't killed");
        let kinds = kinds_in(&fs::read_to_string(&log).unwrap());
        assert!(kinds.contains("flock"), "{kinds:?}");
        let mut kills = 0;
        for kind in &kinds {
            let mut number = 1;
            while !self.round(Some(&format!("{kind}:signal=KILL:when={number}")), &log) {
                number += 1;
            }
            kills += number - 1;
        }
        assert!(kills >= kinds.len(), "{kills} of {kinds:?}");
        println!("{}: {kills} kills, {:.1?}", self.name, started.elapsed());
    }

    /// One child, which is killed at a call, or not at all, and what comes after it; returns whether it ended by
    /// itself.
    fn round(&self, inject: Option<&str>, log: &Path) -> bool {
        let directory = temp_dir();
        let lock = open(directory.path());
        let guard = self.is_held.then(|| lock.lock("a").unwrap());
        let mut child = Traced::start(self.name, directory.path(), inject, log);
        child.tell("go");
        let waiter = self
            .is_waited_for
            .then(|| self.wait_behind(&mut child, &lock));
        let was_broken = guard.map(|guard| self.let_go(guard, &mut child, &lock));
        child.tell("leave");
        let ended_well = child.end();
        let stopwatch = Stopwatch::start();
        let next = match waiter {
            Some(waiter) => waiter.join().unwrap(),
            None => self.take(&lock),
        };
        stopwatch.assert_within(self.bound());
        let said = child.rest();
        self.check(&said, was_broken, &next);
        drop(next);
        if self.name == "value" {
            let value = lock.mutex("a", 0_u64).unwrap();
            assert!(value.peek().unwrap() <= 1);
            // The next store has what is left of one that was cut short.
            value.set(2).unwrap();
            value.remove().unwrap();
        }
        drop(lock);
        assert_only_files_of(directory.path(), self.names);
        ended_well
    }

    /// Somebody who comes to the line when the child has the lock.
    fn wait_behind(&self, child: &mut Traced, lock: &Locker) -> JoinHandle<LockGuard> {
        wait_until("a holder", PATIENCE, || {
            child.has_said("holds") || child.has_ended()
        });
        let waiter = lock.clone();
        let waiter = thread::spawn(move || ALONE.take(&waiter));
        wait_until("a waiter", PATIENCE, || {
            child.has_ended() || waiter.is_finished() || is_waited_for(lock)
        });
        waiter
    }

    /// Releases what the child wanted, when it waits or has ended; returns whether it had been broken.
    fn let_go(&self, guard: LockGuard, child: &mut Traced, lock: &Locker) -> bool {
        wait_until("a child that waits", PATIENCE, || {
            child.has_ended() || self.name == "lock" && is_waited_for(lock)
        });
        match guard.unlock() {
            Ok(()) => false,
            Err(Error::Lost { reason, .. }) => {
                assert_eq!((self.name, reason), ("break", LostReason::Broken));
                true
            }
            Err(e) => panic!("{e}"),
        }
    }

    /// Within which the next one has it.
    fn bound(&self) -> Duration {
        match self.name {
            // A lease that was given away lasts for its ttl, whoever lives.
            "pass" => TTL + SOON,
            _ => SOON,
        }
    }

    fn take(&self, lock: &Locker) -> LockGuard {
        let taken = match self.name {
            "lock_all" => lock.try_lock_all_for(self.names, PATIENCE),
            "read" | "downgrade" => lock.try_write_for("a", PATIENCE),
            "permits" => {
                let permits = lock.semaphore("a", 3).unwrap();
                permits.try_acquire_many_for(3, PATIENCE)
            }
            _ => lock.try_lock_for("a", PATIENCE),
        };
        taken.unwrap().expect("its holder is dead")
    }

    fn check(&self, said: &[String], was_broken: Option<bool>, next: &LockGuard) {
        let about = format!("{}: {said:?}", self.name);
        for token in said.iter().filter_map(|line| line.strip_prefix("has ")) {
            let token: u64 = token.parse().unwrap();
            assert!(next.fencing_token() > token, "{about}");
        }
        let was_held = match said.last().map(|line| line.split(' ').next().unwrap()) {
            _ if !self.is_exclusive => Some(false),
            _ if self.name == "break" => was_broken,
            _ if self.name == "timed" => Some(false),
            Some("has" | "holds") => Some(true),
            Some("left") => Some(false),
            // It may just have got it, or just have left it.
            _ => None,
        };
        assert!(
            was_held.is_none_or(|was_held| next.was_abandoned() == was_held),
            "{about}"
        );
    }
}

fn is_waited_for(lock: &Locker) -> bool {
    !lock.inspect("a").unwrap().waiters.is_empty()
}
