//! What an engine can do, as data: what it can't is refused when a primitive is made.

use std::time::Duration;

use crate::base::claim::{Mode, Prefer};
use crate::base::error::{Error, Result};
use crate::base::token::HAND_OVERS;

/// What an engine can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    /// Whether a name can be held by many that read.
    pub(crate) shared: bool,
    pub(crate) permits: bool,
    /// Whether several names can be had all or none.
    pub(crate) several_names: bool,
    /// How many names that may be.
    pub(crate) most_names: usize,
    /// Whether readers or writers can be preferred.
    pub(crate) preference: bool,
    /// Whether a lease ends with its ttl by itself. Otherwise it ends with its process.
    pub(crate) leases_expire: bool,
    /// Whether somebody may end a lease that doesn't expire: then it is looked at as often as others are renewed.
    pub(crate) breakable: bool,
    /// By how much less than its ttl a lease is valid, because servers whose clocks differ may take each other's place.
    pub(crate) clock_skew: Duration,
    /// How often a lease may pass from thread to thread: each uses a token above the one that was granted.
    pub(crate) hand_overs: u64,
}

impl Default for Capabilities {
    /// A lock with a ttl.
    fn default() -> Self {
        Capabilities {
            shared: false,
            permits: false,
            several_names: false,
            most_names: usize::MAX,
            preference: false,
            leases_expire: true,
            breakable: true,
            clock_skew: Duration::ZERO,
            hand_overs: 0,
        }
    }
}

impl Capabilities {
    /// All that there is, with leases that expire.
    pub(crate) const ALL: Self = Capabilities {
        shared: true,
        permits: true,
        several_names: true,
        most_names: usize::MAX,
        preference: true,
        leases_expire: true,
        breakable: true,
        clock_skew: Duration::ZERO,
        hand_overs: HAND_OVERS,
    };

    /// Refuses what the engine at `place` can't do.
    pub(crate) fn check(self, mode: Mode, prefer: Prefer, place: &str) -> Result<()> {
        let prefers = mode == Mode::Shared && prefer != Prefer::Nobody;
        let (can, what) = match mode {
            Mode::Shared if prefers && self.shared => {
                (self.preference, "a preference for readers or writers")
            }
            Mode::Exclusive => (true, "locks"),
            Mode::Shared => (self.shared, "read-write locks"),
            Mode::Permits { .. } => (self.permits, "semaphores"),
        };
        if can {
            Ok(())
        } else {
            Err(unsupported(place, what))
        }
    }

    /// Refuses so many names, all or none, if the engine at `place` can't.
    pub(crate) fn check_names(self, count: usize, place: &str) -> Result<()> {
        if !self.several_names {
            Err(unsupported(place, "locks of several names"))
        } else if count > self.most_names {
            let what = format!("a lock of more than {} names", self.most_names);
            Err(unsupported(place, &what))
        } else {
            Ok(())
        }
    }
}

/// The error for what the engine at `place` can't do.
pub(crate) fn unsupported(place: &str, what: &str) -> Error {
    Error::Unsupported {
        what: format!("{what} on {place}: use redis://, file: or memory:"),
    }
}
