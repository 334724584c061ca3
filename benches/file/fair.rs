//! Processes that hold for a moment, in a loop.

use std::time::Duration;

use super::Wanted;
use super::contest::{Cpus, Round, in_turns};
use super::locks::{Lock, Locks, Use};
use super::support::{median, ratio};

const HOLD: Duration = Duration::from_millis(1);

pub(crate) fn run(locks: &Locks, wanted: &Wanted) {
    let subject = |lock| [4, 16].map(|processes| (lock, processes));
    let subjects: Vec<(&Lock, usize)> = locks.all.iter().flat_map(subject).collect();
    // Long ones: in a short one nobody is served as often as another.
    let rounds = wanted.rounds.div_ceil(2);
    let measured = in_turns(subjects, rounds, |(lock, processes)| {
        let uses = vec![Use::holding(HOLD); *processes];
        Round::run(lock, &uses, Cpus::Any, wanted.seconds)
    });
    println!(
        "{:<10} {:>3} {:>8} {:>6} {:>8} {:>5} {:>5} {:>6}",
        "", "P", "locks/s", "ratio", "changes", "held", "fair", "least"
    );
    for ((lock, processes), rounds) in &measured {
        let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
        let locks = of(Round::per_second);
        println!(
            "{:<10} {processes:>3} {locks:>8.0} {:>6.2} {:>8.2} {:>5.2} {:>5.2} {:>6.0}",
            lock.label,
            locks * HOLD.as_secs_f64(),
            of(Round::changes),
            of(Round::held),
            of(Round::fairness),
            of(|round| ratio(*round.served.iter().min().expect("processes"), 1)),
        );
    }
}
