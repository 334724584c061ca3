//! Processes that begin together, and what they did in the time that counts.

use std::time::Duration;

use super::table::{Round, per};
use super::worker::{Cycle, Worker, monotonic, sleep_until};

/// How long the processes run before it counts: they meet, and open their inboxes.
const WARM_UP: Duration = Duration::from_millis(250);

/// From the order to begin to the beginning.
const START: Duration = Duration::from_millis(20);

/// For as long the counting may begin late: the servers have to be asked.
const LATE: Duration = Duration::from_millis(100);

/// How long they run on, so that none ends before it doesn't count any more.
const MARGIN: Duration = Duration::from_millis(30);

/// What came out of it.
pub(crate) struct Outcome {
    /// Of each process.
    pub(crate) cycles: Vec<Vec<Cycle>>,
    /// From when to when they count.
    pub(crate) window: [Duration; 2],
}

/// Lets processes run for so long. `start` begins to count what it costs, and gives what ends that.
pub(crate) fn contest<E: FnOnce() -> U, U>(
    mut workers: Vec<Worker>,
    length: Duration,
    start: impl FnOnce() -> E,
) -> (Outcome, U) {
    workers.iter_mut().for_each(Worker::await_ready);
    let begin = monotonic() + START;
    let latest = begin + WARM_UP + LATE + length;
    for worker in &mut workers {
        worker.run([begin, latest + MARGIN]);
    }
    sleep_until(begin + WARM_UP);
    let end = start();
    let from = monotonic();
    let until = latest.min(from + length);
    sleep_until(until);
    let cost = end();
    let outcome = Outcome {
        cycles: workers.into_iter().map(Worker::cycles).collect(),
        window: [from, until],
    };
    (outcome, cost)
}

impl Outcome {
    pub(crate) fn counts(&self, time: Duration) -> bool {
        self.window[0] <= time && time < self.window[1]
    }

    /// How often anybody had a lock.
    pub(crate) fn count(&self) -> usize {
        let all = self.cycles.iter().flatten();
        all.filter(|cycle| self.counts(cycle.held[0])).count()
    }

    pub(crate) fn per_second(&self, count: usize) -> f64 {
        per(count, 1) / (self.window[1] - self.window[0]).as_secs_f64()
    }

    /// All cycles of one lock with their processes, in the order in which they held it.
    fn in_order(&self) -> Vec<(usize, Cycle)> {
        let of_one = |(process, cycles): (usize, &Vec<Cycle>)| {
            let cycles = cycles.iter().map(move |cycle| (process, *cycle));
            cycles.collect::<Vec<_>>()
        };
        let mut order: Vec<_> = self.cycles.iter().enumerate().flat_map(of_one).collect();
        order.sort_unstable_by_key(|(_, cycle)| cycle.held[0]);
        order
    }

    /// What was measured of one lock for all, which never two had at once, with tokens that increase.
    pub(crate) fn round(&self) -> Round {
        for pair in self.in_order().windows(2) {
            let [(_, before), (_, after)] = [pair[0], pair[1]];
            // There are locks without.
            let is_later = before.token < after.token || after.token == 0;
            let is_alone = before.held[1] <= after.held[0];
            assert!(is_later && is_alone, "held at once: {before:?} {after:?}");
        }
        self.measured()
    }

    /// Of any lock: who had it how often, how fast it went from one to the next, and how long each waited.
    pub(crate) fn measured(&self) -> Round {
        let order = self.in_order();
        let mut round = Round::default();
        let mut served = vec![0; self.cycles.len()];
        let (mut changes, mut overlaps, mut held) = (0, 0, Duration::ZERO);
        for pair in order.windows(2) {
            let [(former, before), (process, cycle)] = [pair[0], pair[1]];
            if !self.counts(cycle.held[0]) {
                continue;
            }
            served[process] += 1;
            held += cycle.held[1] - cycle.held[0];
            let gap = cycle.held[0].saturating_sub(before.held[1]);
            overlaps += usize::from(cycle.held[0] < before.held[1]);
            round.micros("gap us", gap);
            round.millis("wait ms", cycle.waited());
            if former != process {
                changes += 1;
                round.micros("change us", gap);
            }
        }
        let all: usize = served.iter().sum();
        assert!(all > 0, "nobody had the lock");
        served.sort_unstable();
        let [least, most] = [served[0], served[served.len() - 1]];
        round.add("locks/s", self.per_second(all));
        round.add("changes/s", self.per_second(changes));
        round.add("changes", per(changes, all));
        round.add("overlaps", per(overlaps, 1));
        round.add("held ms", held.as_secs_f64() * 1e3 / per(all, 1));
        round.add("fair", per(least, most));
        round.add("least", per(least, 1));
        const SHARES: [&str; 4] = ["share 1", "share 2", "share 3", "share 4"];
        for (share, served) in SHARES.into_iter().zip(&served) {
            round.add(share, 100.0 * per(*served, all));
        }
        round
    }
}
