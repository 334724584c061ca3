//! Who waits until a value changes: a count of its changes, and a condition variable.

use std::sync::{Arc, Weak};

use crate::base::sys::collections::HashMap;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::{Deadline, Key, Result, limits::LONGEST_SLEEP, sys::time};
use crate::engine::Watch;

/// The values that somebody watches.
#[derive(Debug, Default)]
pub(super) struct Watches(HashMap<Key, Weak<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    changes: Mutex<u64>,
    changed: Condvar,
}

/// How one thread waits until a value changes.
pub(super) struct MemoryWatch {
    watched: Arc<Watched>,
    /// How many changes there were at the last look; `None` before the first.
    seen: Option<u64>,
}

impl Watches {
    pub(super) fn watch(&mut self, key: &Key) -> MemoryWatch {
        let known = self.0.get(key).and_then(Weak::upgrade);
        let watched = known.unwrap_or_else(|| {
            self.0.retain(|_, watched| watched.strong_count() > 0);
            let watched = Arc::default();
            self.0.insert(key.clone(), Arc::downgrade(&watched));
            watched
        });
        MemoryWatch {
            watched,
            seen: None,
        }
    }

    /// To be called after the change.
    pub(super) fn tell(&self, key: &Key) {
        if let Some(watched) = self.0.get(key).and_then(Weak::upgrade) {
            *watched.changes.lock() += 1;
            watched.changed.notify_all();
        }
    }
}

impl Watch for MemoryWatch {
    fn changed(&mut self, until: &Deadline) -> Result<bool> {
        let watched = self.watched.clone();
        let wake = Arc::new(move || {
            // Under the lock: whoever has looked before waits by now, and is notified.
            let _changes = watched.changes.lock();
            watched.changed.notify_all();
        });
        let _registered = until.cancel().map(|cancel| cancel.on_set(wake));
        let mut changes = self.watched.changes.lock();
        loop {
            let before = self.seen.replace(*changes);
            if before != Some(*changes) || until.is_over() {
                return Ok(before.is_some_and(|before| before != *changes));
            }
            let by = time::now() + until.remaining().min(LONGEST_SLEEP);
            changes = self.watched.changed.wait_until(changes, by);
        }
    }
}
