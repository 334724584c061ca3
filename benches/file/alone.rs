//! One process, nobody else.

use std::time::Duration;

use super::Wanted;
use super::contest::{Cpus, alone, in_turns};
use super::locks::{Lock, Locks};
use super::support::{median, percentile};

/// A round is short, so that many of each are in turns.
const LENGTH: Duration = Duration::from_millis(200);

pub(crate) fn run(locks: &Locks, wanted: &Wanted) {
    let subjects: Vec<&Lock> = locks.all.iter().collect();
    let rounds = 4 * wanted.rounds;
    let measured = in_turns(subjects, rounds, |lock| alone(lock, Cpus::One, LENGTH));
    println!(
        "{:<10} {:>8} {:>8} {:>10}",
        "", "p50 us", "p99 us", "to file:"
    );
    let of = |rounds: &[Vec<Duration>], percent| {
        median(rounds.iter().map(|times| percentile(times, percent)))
    };
    let first = of(&measured[0].1, 50);
    for (lock, rounds) in &measured {
        let [p50, p99] = [50, 99].map(|percent| of(rounds, percent));
        println!(
            "{:<10} {p50:>8.2} {p99:>8.2} {:>10.2}",
            lock.label,
            p50 / first
        );
    }
}
