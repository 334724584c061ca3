//! Nodes that are still to be deleted, after their owners have lost them to time.
//!
//! A thread deletes them, which begins with the first and ends with the last, or with the locker.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::limits::DEFERRED_PAUSES;
use crate::base::sys;
use crate::base::sys::sync::Mutex;

/// Nodes that are still to be deleted.
#[derive(Default)]
pub(super) struct Leftovers(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    paths: Vec<String>,
    has_worker: bool,
}

/// Who deletes nodes, and has those that are left.
pub(super) trait Deletes: Send + Sync + 'static {
    fn leftovers(&self) -> &Leftovers;

    /// Set when nobody needs it any more.
    fn closed(&self) -> &Cancel;

    /// Whether there is an answer. One that is gone already, or that this user may not delete, is done with.
    fn delete(self: &Arc<Self>, paths: &[String], deadline: &Deadline) -> bool;
}

/// One try.
const TRY: Duration = Duration::from_secs(2);

impl Leftovers {
    pub(super) fn leave(&self, deletes: &Arc<impl Deletes>, paths: Vec<String>) {
        let mut queue = self.0.lock();
        queue.paths.extend(paths);
        if !queue.has_worker && !queue.paths.is_empty() {
            let deletes = Arc::downgrade(deletes);
            let started = sys::spawn("crosslock-zk-tidy", move || work(&deletes));
            if let Err(e) = &started {
                log::warn!("no thread to delete the nodes of leases that have ended: {e}");
            }
            queue.has_worker = started.is_ok();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().paths.is_empty()
    }

    /// Whether that one is about to be deleted.
    pub(super) fn has(&self, path: &String) -> bool {
        self.0.lock().paths.contains(path)
    }

    /// Those that are there now; without any the thread isn't counted on any more.
    fn all(&self) -> Vec<String> {
        let mut queue = self.0.lock();
        queue.has_worker = !queue.paths.is_empty();
        queue.paths.clone()
    }

    fn remove(&self, gone: &[String]) {
        self.0.lock().paths.retain(|path| !gone.contains(path));
    }
}

/// The thread.
fn work(deletes: &Weak<impl Deletes>) {
    let mut pauses = DEFERRED_PAUSES.waits();
    while let Some(one) = deletes.upgrade() {
        let paths = one.leftovers().all();
        if paths.is_empty() || one.closed().is_set() {
            return;
        }
        if one.delete(&paths, &Deadline::after(TRY).or(one.closed())) {
            one.leftovers().remove(&paths);
            continue;
        }
        let pause = pauses.next().unwrap_or(DEFERRED_PAUSES.cap);
        let until = Deadline::after(pause).or(one.closed());
        drop(one);
        until.sleep(pause);
    }
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().paths.len();
        f.debug_struct("Leftovers")
            .field("count", &count)
            .finish_non_exhaustive()
    }
}
