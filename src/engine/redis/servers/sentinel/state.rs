//! What is known of the master between two look-ups, and whether that is enough for a call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::lookup::Lookup;
use crate::base::sys::time;
use crate::engine::redis::server::Server;

/// When no sentinel has answered, a master that works isn't looked up again for as long.
pub(super) const OUTAGE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) master: Option<Master>,
    /// The last look-up: sentinels that are slower than the others may still answer it.
    pub(super) lookup: Option<Arc<Lookup>>,
    /// When it was found last that no sentinel answers, if that is so.
    pub(super) outage: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Master {
    pub(super) server: Arc<Server>,
    pub(super) epoch: u64,
    /// When the look-up began that named it last.
    pub(super) found: Instant,
    /// When a call to it failed, if it did since.
    pub(super) failed: Option<Instant>,
    /// When its answer made it doubtful that it is the master still, if one did since.
    pub(super) doubted: Option<Instant>,
}

/// What is known of the master without asking.
pub(super) enum Known {
    Nothing,
    Master(Arc<Server>),
    /// It is too long since it was looked up, or it has failed.
    Perhaps {
        server: Arc<Server>,
        /// When a look-up may have begun that serves.
        since: Instant,
        /// Whether the last look-up has found nothing.
        is_outage: bool,
    },
}

impl State {
    pub(super) fn known(&self, within: Duration) -> Known {
        let Some(master) = &self.master else {
            return Known::Nothing;
        };
        let now = time::now();
        let server = master.server.clone();
        let is_fresh = now.saturating_duration_since(master.found) <= within;
        let age = |at: Instant| now.saturating_duration_since(at);
        // `None` is before any time.
        let suspected = master.failed.max(master.doubted);
        if (is_fresh && suspected.is_none()) || self.outage.is_some_and(|at| age(at) < OUTAGE) {
            return Known::Master(server);
        }
        let oldest = now.checked_sub(within).unwrap_or(master.found);
        Known::Perhaps {
            server,
            since: suspected.unwrap_or(oldest),
            is_outage: self.outage.is_some(),
        }
    }
}
