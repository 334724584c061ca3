//! Who waits for a limited time, beside one who locks in a loop.

use std::time::Duration;

use super::Wanted;
use super::contest::beside_a_loop;
use super::locks::{Locks, Use};
use super::support::{TIMED, percentile};

pub(crate) fn run(locks: &Locks, _: &Wanted) {
    println!(
        "{:<10} {:>12} {:>9} {:>8} {:>8}",
        "", "loop holds", "got", "p50 ms", "max ms"
    );
    let holds = [
        ("0 ms", Use::holding(Duration::ZERO)),
        ("1 ms", Use::holding(Duration::from_millis(1))),
        ("1 ms, works", Use::working(Duration::from_millis(1))),
    ];
    for (hold, use_as) in holds {
        for lock in locks.all.iter().filter(|lock| lock.can_wait_for_a_time()) {
            let cycles = beside_a_loop(&lock.named(hold), use_as);
            let got = cycles.iter().filter(|cycle| cycle.token > 0).count();
            let mut waits: Vec<_> = cycles.iter().map(|cycle| cycle.waited()).collect();
            waits.sort_unstable();
            let most = waits.last().map_or(0.0, |most| most.as_secs_f64() * 1e3);
            println!(
                "{:<10} {hold:>12} {:>9} {:>8.2} {most:>8.1}",
                lock.label,
                format!("{got} of {}", TIMED.0),
                percentile(&waits, 50) / 1e3,
            );
        }
    }
}
