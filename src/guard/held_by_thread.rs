//! The locks that each thread has taken and hasn't released: they tell a thread that waits for itself, or threads that
//! wait in a circle.
//!
//! A guard may move to another thread, and no code runs when it does. Its thread is known as long as no other thread
//! uses the guard: from its first use elsewhere on, no thread is said to have it. One that moves and isn't used is
//! taken to be where it was taken.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::base::{
    AfterFork, Claim, ForkLocal, Key, Mode, Process, fork::get_or_make, sys::sync::Mutex,
};
use crate::{lease::monitor::LeaseMonitor, queue::Turn};

/// The lease of a guard.
pub(super) type Held = LeaseMonitor<Turn>;

thread_local! {
    static TAKEN: RefCell<Taken> = const { RefCell::new(Taken { locks: Vec::new(), tidy_at: 0 }) };
    /// This thread's, which no other thread of the process has ever.
    static NUMBER: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

struct Taken {
    locks: Vec<Lock>,
    /// When there are as many, those that were released are forgotten.
    tidy_at: usize,
}

struct Lock {
    held: Weak<Held>,
    /// In a child made by `fork` those of its parent aren't looked at: they may have been locked at that moment.
    process: Process,
}

/// Keeps in mind what this thread has taken, whoever releases it.
///
/// Permits aren't: to take some for others, and to wait until they give them back, is what semaphores are for. Nor are
/// tasks: a worker may have several.
pub(crate) fn remember(held: &Arc<Held>, mode: Mode, process: Process) {
    const FEW: usize = 8;
    if matches!(mode, Mode::Permits { .. } | Mode::Task) {
        return;
    }
    // A thread that is ending has nothing to remember it by.
    let _ = TAKEN.try_with(|taken| {
        let taken = &mut *taken.borrow_mut();
        if taken.locks.len() >= taken.tidy_at {
            taken.locks.retain(|lock| lock.held.strong_count() > 0);
            taken.tidy_at = FEW.max(2 * taken.locks.len());
        }
        held.set_thread(number());
        let held = Arc::downgrade(held);
        taken.locks.push(Lock { held, process });
    });
}

/// This thread uses a guard. If another thread took it, it has moved.
pub(super) fn used(held: &Held) {
    let thread = held.thread();
    if thread != 0 && thread != number() {
        held.set_thread(0);
    }
}

/// Whether this thread took one of these names at that endpoint, by whichever locker, and still has it.
pub(crate) fn has_taken(claim: &Claim, endpoint: &str, process: Process) -> bool {
    let found = TAKEN.try_with(|taken| {
        let taken = taken.borrow();
        let mut own = taken.locks.iter().filter(|lock| lock.process == process);
        own.any(|lock| {
            let held = lock.held.upgrade();
            held.is_some_and(|held| {
                held.thread() == number() && held.has_one_of(claim.keys(), endpoint)
            })
        })
    });
    found.unwrap_or(false)
}

/// What this thread took in this process, and has, as far as it is known.
pub(super) fn all(process: Process) -> Vec<Weak<Held>> {
    let all = TAKEN.try_with(|taken| {
        let taken = taken.borrow();
        let own = taken.locks.iter().filter(|lock| lock.process == process);
        let own = own.filter(|lock| {
            let held = lock.held.upgrade();
            held.is_some_and(|held| held.thread() == number())
        });
        own.map(|lock| lock.held.clone()).collect()
    });
    all.unwrap_or_default()
}

pub(super) fn number() -> u64 {
    // Nothing of it is dropped: a thread that is ending has it, too.
    NUMBER.try_with(|number| *number).unwrap_or_default()
}

/// The threads that wait and hold something.
#[derive(Default)]
struct Waiting(Mutex<Vec<Arc<Waiter>>>);

/// A thread that waits and holds something.
#[derive(Debug)]
struct Waiter {
    id: u64,
    thread: u64,
    endpoint: String,
    wants: Vec<Key>,
    has: Vec<Weak<Held>>,
}

/// While it lives, others find that this thread waits.
#[derive(Debug)]
pub(crate) struct InWait(Arc<Waiter>);

impl InWait {
    /// `None` for a thread that holds nothing.
    pub(crate) fn begin(claim: &Claim, endpoint: &str, process: Process) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let has = all(process);
        if has.is_empty() {
            return None;
        }
        let waiter = Arc::new(Waiter {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            thread: number(),
            endpoint: endpoint.to_owned(),
            wants: claim.keys().to_vec(),
            has,
        });
        waiting().0.lock().push(waiter.clone());
        Some(InWait(waiter))
    }

    /// What is waited for in the end that this thread itself has, if the threads ahead wait in a circle.
    pub(crate) fn waits_for_itself(&self) -> Option<String> {
        // Nothing is locked while guards are looked at: one may be the last that has its lease.
        let others = waiting().0.lock().clone();
        let mut seen = vec![self.0.id];
        let mut ahead = vec![self.0.clone()];
        while let Some(one) = ahead.pop() {
            for other in others.iter().filter(|other| other.has_what(&one)) {
                if self.0.has_what(other) {
                    let names = other.wants.iter().filter(|key| self.0.has(key, other));
                    return names.map(|key| key.name().to_owned()).next();
                }
                if !seen.contains(&other.id) {
                    seen.push(other.id);
                    ahead.push(other.clone());
                }
            }
        }
        None
    }
}

impl Drop for InWait {
    fn drop(&mut self) {
        waiting().0.lock().retain(|one| one.id != self.0.id);
    }
}

impl Waiter {
    fn has_what(&self, waiter: &Waiter) -> bool {
        waiter.wants.iter().any(|key| self.has(key, waiter))
    }

    fn has(&self, key: &Key, waiter: &Waiter) -> bool {
        let mut held = self.has.iter().filter_map(Weak::upgrade);
        held.any(|held| {
            held.thread() == self.thread
                && held.has_one_of(std::slice::from_ref(key), &waiter.endpoint)
        })
    }
}

impl AfterFork for Waiting {
    fn after_fork(&self) -> Self {
        Waiting::default()
    }
}

fn waiting() -> Arc<Waiting> {
    static WAITING: OnceLock<ForkLocal<Waiting>> = OnceLock::new();
    get_or_make(&WAITING, || ForkLocal::new(Waiting::default()))
        .get()
        .clone()
}
