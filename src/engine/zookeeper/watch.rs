//! How one thread waits until a value changes: by a watch of its node, which may not be there yet.

use std::sync::Arc;

use super::client::{Op, WatchEvent, Watcher};
use super::locks::Locks;
use crate::base::{Deadline, Result};
use crate::engine::Watch;

pub(super) struct ValueWatch {
    locks: Arc<Locks>,
    path: String,
    /// `None` before the first call, and when it has told: it tells once.
    watcher: Option<Watcher>,
}

impl ValueWatch {
    pub(super) fn new(locks: Arc<Locks>, path: String) -> Self {
        ValueWatch {
            locks,
            path,
            watcher: None,
        }
    }
}

impl Watch for ValueWatch {
    fn changed(&mut self, until: &Deadline) -> Result<bool> {
        let Some(watcher) = &self.watcher else {
            let watcher = Watcher::new();
            let watching = Op::watch_any(self.path.clone(), watcher.clone());
            let by = self.locks.gives_up_by(until);
            let asked = self.locks.call_again(&[watching], &by);
            let answered = asked.and_then(|mut replies| replies.exists());
            self.locks.told(None, answered)?;
            self.watcher = Some(watcher);
            return Ok(false);
        };
        let told = watcher.wait(until);
        if told.is_some() {
            self.watcher = None;
        }
        Ok(told.is_some_and(|told| told != WatchEvent::ConnectionLost))
    }
}
