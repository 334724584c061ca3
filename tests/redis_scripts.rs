//! The scripts of `lua/`, run as they are: their answers, and what they leave in the server.

#![cfg(feature = "redis")]
// A test that unwraps fails with the error, which is what it is for.
#![allow(clippy::unwrap_used)]

mod support;

#[path = "redis_scripts/acquire.rs"]
mod acquire;
#[path = "redis_scripts/attack.rs"]
mod attack;
#[path = "redis_scripts/bench.rs"]
mod bench;
#[path = "redis_scripts/costs.rs"]
mod costs;
#[path = "redis_scripts/counter.rs"]
mod counter;
#[path = "redis_scripts/kept.rs"]
mod kept;
#[path = "redis_scripts/late_copies.rs"]
mod late_copies;
#[path = "redis_scripts/line.rs"]
mod line;
#[path = "redis_scripts/phases.rs"]
mod phases;
#[path = "redis_scripts/release.rs"]
mod release;
#[path = "redis_scripts/renew.rs"]
mod renew;
#[path = "redis_scripts/seen.rs"]
mod seen;
#[path = "redis_scripts/several.rs"]
mod several;
#[path = "redis_scripts/several_torn.rs"]
mod several_torn;
#[path = "redis_scripts/several_turns.rs"]
mod several_turns;
#[path = "redis_scripts/shared.rs"]
mod shared;
#[path = "redis_scripts/value.rs"]
mod value;

use std::time::Duration;

pub(crate) const TTL: u64 = 60_000;
/// The same, as the server tells it.
pub(crate) const FULL: i64 = 60_000;
pub(crate) const COUNTER_TTL: i64 = 86_400_000;
pub(crate) const HAND_OVERS: u64 = 1024;
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
