//! Waiting: who is served when, at what cost, and what becomes of those that crash, stall or give up.

#![cfg(all(target_os = "linux", any(feature = "file", feature = "redis")))]

#[cfg(feature = "redis")]
mod attack;
#[cfg(feature = "redis")]
mod cancel;
#[cfg(feature = "redis")]
mod close;
#[cfg(feature = "redis")]
mod crashes;
#[cfg(feature = "redis")]
mod errors;
#[cfg(feature = "redis")]
mod failovers;
#[cfg(feature = "file")]
mod files;
#[cfg(feature = "redis")]
mod giving_up;
#[cfg(feature = "redis")]
mod hand_over;
#[cfg(feature = "redis")]
mod inbox;
#[cfg(feature = "redis")]
mod late_grants;
#[cfg(feature = "redis")]
mod line;
#[cfg(feature = "redis")]
mod load;
#[cfg(feature = "redis")]
mod local;
#[cfg(feature = "redis")]
mod losses;
mod memory;
#[cfg(feature = "redis")]
mod namespaces;
#[cfg(feature = "redis")]
mod outages;
#[cfg(feature = "redis")]
mod passing;
mod puppet;
#[cfg(feature = "redis")]
mod reading;
#[cfg(feature = "redis")]
mod torture;
#[cfg(feature = "redis")]
mod watch;

#[cfg(feature = "redis")]
use std::env;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker, Result};

#[cfg(feature = "redis")]
use support::puppet::{TTL, URL};
use support::{Stopwatch, Thread, now, wait_until};

/// Far more than anything here takes, even on a loaded machine, and less than the heartbeats of [`LONG`].
const PATIENCE: Duration = Duration::from_secs(20);

/// The ttl of those whose heartbeats, which come after 70 s at the earliest, are to play no part.
const LONG: Duration = Duration::from_secs(300);

#[cfg(feature = "redis")]
fn arg(name: &str) -> String {
    env::var(name).unwrap()
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A number that only a reader of the output judges.
fn report(what: &str, number: impl std::fmt::Debug) {
    println!("{what}: {number:?}");
}

#[cfg(feature = "redis")]
fn median(mut of: Vec<Duration>) -> Duration {
    of.sort();
    of[of.len() / 2]
}

/// A timed call for a lock that is taken. Where the machine stands still at its end, no answer comes in time.
#[track_caller]
fn wait_in_vain(lock: &Locker, name: &str, timeout: Duration) {
    match lock.try_lock_for(name, timeout) {
        Ok(None) | Err(Error::Unavailable { .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// What a call in a thread of its own will give.
struct Pending<T> {
    outcome: Receiver<Result<T>>,
    thread: Thread,
}

/// A call of `lock` in a thread of its own.
fn waiting(lock: &Locker, name: &str) -> Pending<LockGuard> {
    let name = name.to_owned();
    calling(lock, move |lock| lock.lock(&name))
}

/// Any call in a thread of its own.
fn calling<T: Send + 'static>(
    lock: &Locker,
    call: impl FnOnce(&Locker) -> Result<T> + Send + 'static,
) -> Pending<T> {
    let (tell, outcome) = mpsc::channel();
    let (identify, identity) = mpsc::channel();
    let lock = lock.clone();
    thread::spawn(move || {
        identify.send(Thread::current()).unwrap();
        // Nobody listens when the test has failed.
        let _ = tell.send(call(&lock));
    });
    let thread = identity.recv().unwrap();
    Pending { outcome, thread }
}

impl<T> Pending<T> {
    #[track_caller]
    fn outcome(&self) -> Result<T> {
        let outcome = self.outcome.recv_timeout(PATIENCE);
        outcome.expect("it never returned")
    }

    #[track_caller]
    fn result(&self) -> T {
        self.outcome().unwrap()
    }

    /// The same for a call that does so much that it depends on the machine how long it takes.
    #[track_caller]
    fn result_of_much(&self) -> T {
        let outcome = self.outcome.recv_timeout(10 * PATIENCE);
        outcome.expect("it never returned").unwrap()
    }

    /// Whether it has returned. What it gave is lost then, so this is for assertions.
    #[cfg(feature = "redis")]
    fn is_over(&self) -> bool {
        self.outcome.try_recv().is_ok()
    }

    /// Waits until the thread sleeps: that it stands in the local queue can't be seen otherwise.
    #[track_caller]
    fn wait_until_asleep(&self) {
        wait_until("a thread to wait", PATIENCE, || self.thread.is_asleep());
    }
}

/// So many calls of `lock`, which stand in the local queue in this order: the lock is held by this locker, or another
/// thread asks for it.
fn queued(lock: &Locker, name: &str, count: usize) -> Vec<Pending<LockGuard>> {
    let one = |_| {
        let one = waiting(lock, name);
        one.wait_until_asleep();
        one
    };
    (0..count).map(one).collect()
}
