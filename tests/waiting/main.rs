//! Waiting: what it costs, and what wakes those that wait.

#![cfg(all(target_os = "linux", any(feature = "file", feature = "redis")))]

#[cfg(feature = "redis")]
mod errors;
#[cfg(feature = "file")]
mod files;
#[cfg(feature = "redis")]
mod hand_over;
#[cfg(feature = "redis")]
mod line;
#[cfg(feature = "redis")]
mod load;
#[cfg(feature = "redis")]
mod pending;
#[cfg(feature = "redis")]
mod watch;

use std::thread;
use std::time::Duration;

use crosslock::Locker;
#[cfg(feature = "redis")]
use crosslock::{Error, LockGuard, Result};

#[cfg(feature = "redis")]
use self::pending::*;
#[cfg(feature = "redis")]
use self::watch::*;
#[cfg(feature = "redis")]
use support::puppet::URL;
use support::wait_until;

/// Far more than anything here takes, even on a loaded machine, and less than the heartbeats of [`LONG`].
const PATIENCE: Duration = Duration::from_secs(20);

/// The ttl of those whose heartbeats, which come after 70 s at the earliest, are to play no part.
const LONG: Duration = Duration::from_secs(300);

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
