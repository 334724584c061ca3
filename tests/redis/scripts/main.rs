//! The scripts of `lua/`, run as they are: their answers, and what they leave in the server.

#![cfg(feature = "redis")]

mod ask;
mod bench;
mod conflicts;
mod costs;
mod counter;
mod keys;
mod passed_over;
mod seen;
mod sharded;

use std::time::Duration;

pub(crate) const TTL: u64 = 60_000;
/// The same, as the server tells it.
pub(crate) const FULL: i64 = 60_000;
pub(crate) const COUNTER_TTL: i64 = 86_400_000;
pub(crate) const HAND_OVERS: u64 = 1024;
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
