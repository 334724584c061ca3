//! Threads that lock while they end: in the destructor of a thread-local, also when their process ends.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crosslock::Locker;

use super::*;
use support::{Child, is_child, say, wait_until};

#[cfg(feature = "redis")]
use support::RedisServer;

/// How the thread ends: `thread`, or `process`, which it ends with itself.
const END: &str = "TEST_END";

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Locks when its thread ends.
struct Late(Locker);

impl Drop for Late {
    fn drop(&mut self) {
        drop(self.0.lock("free").unwrap());
        for other in [self.0.clone(), locker()] {
            let holder = hold_for_a_moment(other);
            drop(self.0.lock("taken").unwrap());
            holder.join().unwrap();
        }
        let semaphore = self.0.semaphore("permits", 2);
        drop(semaphore.map(|permits| permits.acquire().unwrap()));
        say("locked");
    }
}

/// Another thread takes the lock, and holds it until somebody waits.
fn hold_for_a_moment(lock: Locker) -> thread::JoinHandle<()> {
    static HELD: AtomicBool = AtomicBool::new(false);
    let holder = thread::spawn(move || {
        let guard = lock.lock("taken").unwrap();
        HELD.store(true, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(100));
        guard.unlock().unwrap();
    });
    wait_until("the holder", PATIENCE, || {
        HELD.swap(false, Ordering::SeqCst)
    });
    holder
}

#[test]
fn child_locks_while_it_ends() {
    if !is_child("exits::child_locks_while_it_ends") {
        return;
    }
    let lock = locker();
    let ending = move || {
        // It is dropped last: what this thread uses to lock has been dropped by then.
        LATE.set(Some(Late(lock.clone())));
        drop(lock.lock("free").unwrap());
        drop(hold_for_a_moment(lock.clone()));
        drop(lock.lock("taken").unwrap());
        if arg(END) == "process" {
            std::process::exit(0);
        }
    };
    thread::spawn(ending).join().unwrap();
}

fn locks_while_it_ends(url: &str) {
    for end in ["thread", "process"] {
        let mut child = Child::spawn(
            "exits::child_locks_while_it_ends",
            &[(URL, url), (END, end)],
        );
        child.wait_for("locked", PATIENCE);
        let status = child.wait(PATIENCE);
        assert!(status.success(), "{end}: {status}");
    }
}

#[test]
fn thread_that_ends_can_lock_in_memory() {
    locks_while_it_ends("memory:");
}

#[cfg(feature = "file")]
#[test]
fn thread_that_ends_can_lock_on_file() {
    let dir = temp_dir();
    locks_while_it_ends(&file_url(&dir));
}

#[cfg(feature = "redis")]
#[test]
fn thread_that_ends_can_lock_on_redis() {
    let server = RedisServer::start();
    locks_while_it_ends(&server.url());
}
