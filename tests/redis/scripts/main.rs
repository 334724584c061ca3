//! The scripts of `lua/`, run as they are: their answers, and what they leave in the server.

#![cfg(feature = "redis")]

mod acquire;
mod adopt;
mod ask;
mod attack;
mod bench;
mod breaks;
mod costs;
mod counter;
mod downgrade;
mod inspect;
mod kept;
mod late_copies;
mod line;
mod passed_over;
mod phases;
mod raise;
mod release;
mod renew;
mod seen;
mod several;
mod several_bench;
mod several_torn;
mod several_turns;
mod sharded;
mod shared;
mod value;

use std::time::Duration;

pub(crate) const TTL: u64 = 60_000;
/// The same, as the server tells it.
pub(crate) const FULL: i64 = 60_000;
pub(crate) const COUNTER_TTL: i64 = 86_400_000;
pub(crate) const HAND_OVERS: u64 = 1024;
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
