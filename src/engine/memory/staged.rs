//! A memory whose owners ask when a test's clock says so: no waiter of it is taken for dead, however seldom it asks.

use std::time::Duration;

use super::MemoryEngine;
use crate::base::clock::BootInstant;
use crate::base::error::LostReason;
use crate::base::name::Key;
use crate::engine::heartbeat::{Acquired, IfTaken};
use crate::engine::rules::Table;
use crate::engine::{Answer, Grant, Request};

impl MemoryEngine {
    /// Asks once. An owner that waits keeps its place without asking again.
    pub(crate) fn ask(&self, request: Request<'_>, waits: bool) -> Answer {
        let if_taken = if waits {
            IfTaken::Wait {
                heartbeat_within: Duration::MAX,
                inbox: None,
            }
        } else {
            IfTaken::Leave
        };
        let since = self.clock.now();
        match self.acquire(request, if_taken, since) {
            Acquired::Granted { token, value } => Answer::Granted(Grant {
                token,
                value,
                since,
            }),
            Acquired::Taken(taken) => Answer::Taken {
                is_queued: waits,
                holder: taken.holder,
            },
            Acquired::Broken => Answer::Broken,
        }
    }

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
