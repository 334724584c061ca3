//! What an engine can do, as data: what it can't is refused when a primitive is made.

use std::time::Duration;

use crate::base::claim::{Mode, Prefer};
use crate::base::error::{Error, Result};
use crate::base::token::HAND_OVERS;

/// What an engine can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    /// How many names can be had all or none.
    pub(crate) most_names: usize,
    /// Whether readers or writers can be preferred.
    pub(crate) preference: bool,
    /// Whether a lease ends with its ttl by itself. Otherwise it ends with its process.
    pub(crate) leases_expire: bool,
    /// By how much less than its ttl a lease is valid, because servers whose clocks differ may take each other's place.
    pub(crate) clock_skew: Duration,
    /// How often a lease may pass from thread to thread: each uses a token above the one that was granted.
    pub(crate) hand_overs: u64,
}

impl Default for Capabilities {
    /// All that there is, with leases that expire.
    fn default() -> Self {
        Capabilities {
            most_names: usize::MAX,
            preference: true,
            leases_expire: true,
            clock_skew: Duration::ZERO,
            hand_overs: HAND_OVERS,
        }
    }
}

impl Capabilities {
    /// Refuses what the engine at `place` can't do.
    pub(crate) fn check(self, mode: Mode, prefer: Prefer, place: &str) -> Result<()> {
        if mode == Mode::Shared && prefer != Prefer::Fair && !self.preference {
            return Err(unsupported(place, "a preference for readers or writers"));
        }
        Ok(())
    }

    /// Refuses so many names, all or none, if the engine at `place` can't.
    pub(crate) fn check_names(self, count: usize, place: &str) -> Result<()> {
        if count > self.most_names {
            let what = format!("a lock of more than {} names", self.most_names);
            return Err(unsupported(place, &what));
        }
        Ok(())
    }
}

/// The error for what the engine at `place` can't do.
pub(crate) fn unsupported(place: &str, what: &str) -> Error {
    Error::Unsupported {
        what: format!("{what} on {place}: use redis://, file: or memory:"),
    }
}
