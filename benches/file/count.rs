//! What the example `counter` does, in processes of one build or of another.

use std::time::Duration;

use super::Wanted;
use super::contest::{Cpus, Round, in_turns};
use super::locks::{Lock, Locks, Use};
use super::support::{median, ratio};

const PROCESSES: usize = 4;

const LENGTH: Duration = Duration::from_secs(1);

pub(crate) fn run(locks: &Locks, wanted: &Wanted) {
    let subjects: Vec<&Lock> = locks.files().collect();
    let measured = in_turns(subjects, wanted.rounds, |lock| {
        Round::run(lock, &[Use::counting(); PROCESSES], Cpus::Any, LENGTH)
    });
    println!(
        "{:<10} {:>8} {:>9} {:>8} {:>5}  shares",
        "", "locks/s", "to file:", "changes", "fair"
    );
    let rate = |rounds: &[Round]| median(rounds.iter().map(Round::per_second));
    let first = rate(&measured[0].1);
    for (lock, rounds) in &measured {
        let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
        println!(
            "{:<10} {:>8.0} {:>9.2} {:>8.2} {:>5.2}  {}",
            lock.label,
            rate(rounds),
            rate(rounds) / first,
            of(Round::changes),
            of(Round::fairness),
            shares(rounds),
        );
    }
}

/// Of all rounds together, the processes of each in the order of what they got.
fn shares(rounds: &[Round]) -> String {
    let mut sums = [0; PROCESSES];
    for round in rounds {
        let mut served = round.served.clone();
        served.sort_unstable();
        sums.iter_mut()
            .zip(served)
            .for_each(|(sum, own)| *sum += own);
    }
    let all: usize = sums.iter().sum();
    let share = |sum: &usize| format!("{:.0}", 100.0 * ratio(*sum, all));
    sums.iter().map(share).collect::<Vec<_>>().join(" ")
}
