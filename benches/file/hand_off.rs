//! Two processes, between which the lock goes to and fro.

use std::time::Duration;

use super::Wanted;
use super::contest::{Cpus, Round, in_turns};
use super::locks::{Lock, Locks, Use};
use super::support::median;

const WORK: Duration = Duration::from_micros(200);

const LENGTH: Duration = Duration::from_millis(800);

pub(crate) fn run(locks: &Locks, wanted: &Wanted) {
    let subject = |lock| [(lock, Cpus::One), (lock, Cpus::OneEach)];
    let subjects: Vec<(&Lock, Cpus)> = locks.all.iter().flat_map(subject).collect();
    let measured = in_turns(subjects, wanted.rounds, |(lock, cpus)| {
        Round::run(lock, &[Use::working(WORK); 2], *cpus, LENGTH)
    });
    println!(
        "{:<10} {:<9} {:>8} {:>8} {:>10} {:>8} {:>5}",
        "", "", "gap p50", "p99 us", "changes/s", "changes", "fair"
    );
    for ((lock, cpus), rounds) in &measured {
        let of = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value));
        let place = match cpus {
            Cpus::OneEach => "two CPUs",
            Cpus::One | Cpus::Any => "one CPU",
        };
        println!(
            "{:<10} {place:<9} {:>8.1} {:>8.1} {:>10.0} {:>8.2} {:>5.2}",
            lock.label,
            of(&|round| round.gap(50)),
            of(&|round| round.gap(99)),
            of(&|round| round.changes() * round.per_second()),
            of(&Round::changes),
            of(&Round::fairness),
        );
    }
}
