//! What a test's clock and network are told by the memory behind them.

use super::MemoryEngine;
use crate::base::clock::BootInstant;
use crate::base::error::LostReason;
use crate::base::name::Key;
use crate::engine::Request;
use crate::engine::rules::Table;

impl MemoryEngine {
    /// When an owner that waits may come in without anybody's doing; `None` when it may now.
    pub(crate) fn changes(&self, request: Request<'_>) -> Option<BootInstant> {
        let now = self.clock.now();
        let at = self.state().lock().names().changes(request)?;
        (now < at).then_some(at)
    }

    /// How many owners wait for a lock.
    pub(crate) fn waiting(&self, key: &Key) -> usize {
        let now = self.clock.now();
        self.state().lock().names().inspect(key, now).waiters.len()
    }

    /// Forgets who has a lock, and tells them for which reason they have lost it.
    pub(crate) fn forget(&self, key: &Key, is_abandoned: bool, reason: LostReason) {
        let now = self.clock.now();
        let forget = |names: &mut Table| names.forget(key, is_abandoned, now);
        let owners = self.state().lock().change(forget);
        self.memory.receivers.tell(&owners, reason);
    }
}
