//! The locks that each thread has taken and that weren't released yet, by which one that waits for itself is told.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::base::claim::{Claim, Mode};
use crate::base::fork::Process;
use crate::lease::monitor::LeaseMonitor;
use crate::queue::handoff::Turn;

thread_local! {
    static TAKEN: RefCell<Taken> = const { RefCell::new(Taken { locks: Vec::new(), tidy_at: 0 }) };
}

struct Taken {
    locks: Vec<Lock>,
    /// When there are as many, those that were released are forgotten.
    tidy_at: usize,
}

struct Lock {
    held: Weak<LeaseMonitor<Turn>>,
    /// In a child made by `fork` those of its parent aren't looked at: they may have been locked at that moment.
    process: Process,
}

/// Keeps in mind what this thread has taken, whoever releases it.
///
/// Permits aren't: to take some for others, and to wait until they give them back, is what semaphores are for.
pub(crate) fn remember(held: &Arc<LeaseMonitor<Turn>>, mode: Mode, process: Process) {
    const FEW: usize = 8;
    if matches!(mode, Mode::Permits { .. }) {
        return;
    }
    // A thread that is ending has nothing to remember it by.
    let _ = TAKEN.try_with(|taken| {
        let taken = &mut *taken.borrow_mut();
        if taken.locks.len() >= taken.tidy_at {
            taken.locks.retain(|lock| lock.held.strong_count() > 0);
            taken.tidy_at = FEW.max(2 * taken.locks.len());
        }
        let held = Arc::downgrade(held);
        taken.locks.push(Lock { held, process });
    });
}

/// Whether this thread took one of these names at that place, by whichever locker, and it wasn't released yet.
pub(crate) fn has_taken(claim: &Claim, place: &str, process: Process) -> bool {
    let found = TAKEN.try_with(|taken| {
        let taken = taken.borrow();
        let mut own = taken.locks.iter().filter(|lock| lock.process == process);
        own.any(|lock| {
            let held = lock.held.upgrade();
            held.is_some_and(|held| held.has_one_of(claim.keys(), place))
        })
    });
    found.unwrap_or(false)
}
