//! Threads of this process that wait for each other: each has what the next one waits for.
//!
//! Only a thread that holds something and begins to wait is kept in mind, until its wait ends. The last one of a circle
//! finds the others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::held_by_thread::{Held, all, number};
use crate::base::claim::Claim;
use crate::base::fork::{AfterFork, ForkLocal, Process, get_or_make};
use crate::base::name::Key;
use crate::base::sync::Mutex;

/// The threads that wait and hold something.
#[derive(Default)]
struct Waiting(Mutex<Vec<Arc<Waiter>>>);

/// A thread that waits and holds something.
#[derive(Debug)]
struct Waiter {
    id: u64,
    thread: u64,
    place: String,
    wants: Vec<Key>,
    has: Vec<Weak<Held>>,
}

/// While it lives, others find that this thread waits.
#[derive(Debug)]
pub(crate) struct InWait(Arc<Waiter>);

impl InWait {
    /// `None` for a thread that holds nothing.
    pub(crate) fn begin(claim: &Claim, place: &str, process: Process) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let has = all(process);
        if has.is_empty() {
            return None;
        }
        let waiter = Arc::new(Waiter {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            thread: number(),
            place: place.to_owned(),
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
                && held.has_one_of(std::slice::from_ref(key), &waiter.place)
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
