//! Nodes that are still to be deleted, after their owners have lost them to time.
//!
//! A thread deletes them, which begins with the first and ends with the last, or with the locker.

use std::fmt;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::client::Op;
use super::locks::Locks;
use crate::base::clock::Deadline;
use crate::base::limits::DEFERRED_PAUSES;

/// Nodes that are still to be deleted.
#[derive(Default)]
pub(super) struct Leftovers(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    paths: Vec<String>,
    has_worker: bool,
}

/// One try.
const TRY: Duration = Duration::from_secs(2);

impl Leftovers {
    pub(super) fn leave(&self, locks: &Arc<Locks>, paths: Vec<String>) {
        let mut queue = self.0.lock();
        queue.paths.extend(paths);
        if !queue.has_worker && !queue.paths.is_empty() {
            let locks = Arc::downgrade(locks);
            let thread = thread::Builder::new().name("crosslock-zk-tidy".into());
            let started = thread.spawn(move || work(&locks));
            if let Err(e) = &started {
                log::warn!("no thread to delete the nodes of leases that have ended: {e}");
            }
            queue.has_worker = started.is_ok();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().paths.is_empty()
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
fn work(locks: &Weak<Locks>) {
    let mut pauses = DEFERRED_PAUSES.waits();
    while let Some(locks) = locks.upgrade() {
        let paths = locks.leftovers.all();
        if paths.is_empty() || locks.closed.is_set() {
            return;
        }
        let until = Deadline::after(TRY).or(&locks.closed);
        match delete(&locks, &paths, &until) {
            Ok(()) => locks.leftovers.remove(&paths),
            Err(()) => {
                let pause = pauses.next().unwrap_or(DEFERRED_PAUSES.cap);
                let until = Deadline::after(pause).or(&locks.closed);
                drop(locks);
                until.sleep(pause);
            }
        }
    }
}

/// One that is gone already, or that this user may not delete, is done with.
fn delete(locks: &Arc<Locks>, paths: &[String], deadline: &Deadline) -> Result<(), ()> {
    let delete = |path: &String| Op::Delete {
        path: path.clone(),
        version: None,
    };
    let requests: Vec<_> = paths.iter().map(delete).collect();
    locks.call(&requests, deadline).map(drop).map_err(drop)
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().paths.len();
        f.debug_struct("Leftovers")
            .field("count", &count)
            .finish_non_exhaustive()
    }
}
