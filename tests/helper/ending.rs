//! Threads and processes that lock while they end: also in the destructor of a thread-local.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use support::{hear, say, wait_until, within};

/// How the thread ends: `thread`, or `process`, which it ends with itself.
const END: &str = "TEST_END";

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
}

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

pub(crate) fn lock_while_ending() {
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

pub(crate) fn close_and_exit() {
    let lock = locker();
    let kept: Vec<_> = (0..20)
        .map(|n| lock.lock(&format!("kept-{n}")).unwrap())
        .collect();
    for n in 0..6 {
        let lock = lock.clone();
        let name = format!("loop-{}", n % 3);
        thread::spawn(move || while lock.lock(&name).is_ok() {});
    }
    say("works");
    hear();
    within(Duration::from_millis(500), || lock.close());
    assert!(kept.iter().all(|guard| !guard.is_held()));
    std::process::exit(0);
}
