//! What the benches share: a private server, processes that contend, and the arithmetic of tables.

// Every bench compiles all of this and uses its own part.
#![allow(dead_code, unused_imports)]

mod place;
mod server;
mod task;
mod usage;
mod worker;

pub(crate) use place::{Place, ask, pin_places, spread_places};
pub(crate) use server::{Server, connect, pin};
pub(crate) use task::{Cycle, Inside, TIMED, Task, Way};
pub(crate) use usage::{Counting, Usage};
pub(crate) use worker::{Worker, monotonic, serve, sleep_until};

use std::time::Duration;

/// In microseconds, of sorted times.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> f64 {
    times[times.len() * percent / 100].as_secs_f64() * 1e6
}

/// Of rounds: the one in the middle, which no single burst of noise moves.
pub(crate) fn median(rounds: impl IntoIterator<Item = f64>) -> f64 {
    let mut rounds: Vec<f64> = rounds.into_iter().collect();
    rounds.sort_unstable_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// The least served against the most served.
pub(crate) fn fairness(served: &[usize]) -> f64 {
    let least = served.iter().min().copied().unwrap_or_default();
    let most = served.iter().max().copied().unwrap_or_default();
    ratio(least, most)
}

/// Counts are far below 2^52.
#[expect(clippy::cast_precision_loss)]
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// The number on the command line, if there is one.
pub(crate) fn argument<T: std::str::FromStr>() -> Option<T> {
    std::env::args().find_map(|arg| arg.parse().ok())
}
