//! The rules, while it happens: time and order in a world are exact, so nothing has to be guessed from a log.
//!
//! What is here is shared by all simulated processes, and never locked while a thread of the world may wait.

mod holds;
pub mod meetings;
pub mod remains;
pub mod removals;
pub mod tasks;
mod values;
mod waits;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crosslock_world::Process;

pub use holds::{
    Held, Kind, abandoned, acquired, adopted, breaking, broke, ending, is_broken, looking,
    not_before, passed_on, unreleased,
};
pub use values::{peeked, peeking, reached, read, stored, stores, storing};
pub use waits::{Call, began, began_shared, ended, refused};

use crate::plan::{Plan, Topology};

static PLAN: OnceLock<Plan> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(1);
pub static ACQUISITIONS: AtomicUsize = AtomicUsize::new(0);
pub static TROUBLES: AtomicUsize = AtomicUsize::new(0);

pub fn begin(plan: &Plan) {
    let _ = PLAN.set(plan.clone());
}

pub fn plan() -> &'static Plan {
    PLAN.get().expect("a plan")
}

/// A number that no other thing has.
pub fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A process was killed: what it has counts no more, although its threads never say so.
pub fn died(process: Process) {
    holds::died(process, &waits::died(process));
    meetings::died(process);
    tasks::died(process);
    if plan().topology == Topology::Memory {
        // All locks and values were in it.
        holds::forget();
        values::forget();
        removals::forget();
        meetings::forget();
        tasks::forget();
    }
}

fn locked<T>(of: &'static Mutex<T>) -> MutexGuard<'static, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
