//! What operators do with the names of a memory.

use super::MemoryEngine;
use crate::base::clock::Deadline;
use crate::base::error::{LostReason, Result};
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::engine::{Cursor, Operations, Page};

impl Operations for MemoryEngine {
    fn inspect(&self, key: &Key, _deadline: &Deadline) -> Result<Inspection> {
        let now = self.clock.now();
        Ok(self.state().lock().names().inspect(key, now))
    }

    /// All on one page.
    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        _cursor: Cursor,
        _deadline: &Deadline,
    ) -> Result<Page> {
        let now = self.clock.now();
        let names = self.state().lock().names().list(namespace, prefix, now);
        Ok(Page { names, next: None })
    }

    fn break_lock(&self, key: &Key, _deadline: &Deadline) -> Result<Vec<Holder>> {
        let now = self.clock.now();
        let broken = self
            .state()
            .lock()
            .change(|names| names.break_lock(key, now));
        self.memory
            .receivers
            .tell(&broken.owners, LostReason::Broken);
        Ok(broken.holders)
    }
}
