//! A round: processes that begin together, and what they did in the time that counts.

use std::time::Duration;

use super::locks::{Lock, Use};
use super::support::{Cycle, Worker, fairness, monotonic, percentile, ratio};

/// How long the processes run before it counts.
const WARM_UP: Duration = Duration::from_millis(100);

/// From the order to begin to the beginning.
const START: Duration = Duration::from_millis(20);

/// How long they run on, so that none ends before it doesn't count any more.
const MARGIN: Duration = Duration::from_millis(30);

/// What came out of it.
pub(crate) struct Round {
    /// Of each process.
    pub(crate) served: Vec<usize>,
    length: Duration,
    held: Duration,
    /// From one holder to the next, which was another process; sorted.
    pub(crate) gaps: Vec<Duration>,
}

/// On which CPU each process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpus {
    Any,
    One,
    OneEach,
}

impl Round {
    pub(crate) fn run(lock: &Lock, uses: &[Use], cpus: Cpus, length: Duration) -> Self {
        let spawn = |(number, use_as): (usize, &Use)| cpus.spawn(number, lock, *use_as);
        let mut workers: Vec<Worker> = uses.iter().enumerate().map(spawn).collect();
        workers.iter_mut().for_each(Worker::await_ready);
        let begin = monotonic() + START;
        let window = [begin + WARM_UP, begin + WARM_UP + length];
        for worker in &mut workers {
            worker.run(begin, window[1] + MARGIN);
        }
        let cycles = workers.into_iter().map(Worker::cycles).collect();
        Round::evaluate(in_order(cycles), uses.len(), window)
    }

    fn evaluate(order: Vec<(usize, Cycle)>, processes: usize, [begin, end]: [Duration; 2]) -> Self {
        let mut round = Round {
            served: vec![0; processes],
            length: end - begin,
            held: Duration::ZERO,
            gaps: Vec::new(),
        };
        for (before, (process, cycle)) in order.iter().zip(&order[1..]) {
            if !(begin..end).contains(&cycle.held[0]) {
                continue;
            }
            round.served[*process] += 1;
            round.held += cycle.held[1] - cycle.held[0];
            if before.0 != *process {
                round.gaps.push(cycle.held[0] - before.1.held[1]);
            }
        }
        round.gaps.sort_unstable();
        round
    }

    pub(crate) fn all(&self) -> usize {
        self.served.iter().sum()
    }

    pub(crate) fn per_second(&self) -> f64 {
        ratio(self.all(), 1) / self.length.as_secs_f64()
    }

    pub(crate) fn fairness(&self) -> f64 {
        fairness(&self.served)
    }

    /// Milliseconds that it was held for on average.
    pub(crate) fn held(&self) -> f64 {
        self.held.as_secs_f64() * 1e3 / ratio(self.all(), 1)
    }

    /// Of acquisitions, those after another process.
    pub(crate) fn changes(&self) -> f64 {
        ratio(self.gaps.len(), self.all())
    }

    /// Microseconds; none if nobody got it from another.
    pub(crate) fn gap(&self, percent: usize) -> f64 {
        match &self.gaps[..] {
            [] => f64::NAN,
            gaps => percentile(gaps, percent),
        }
    }
}

/// One process: the times from asking for the lock to asking again, sorted.
pub(crate) fn alone(lock: &Lock, cpus: Cpus, length: Duration) -> Vec<Duration> {
    let mut worker = cpus.spawn(1, lock, Use::holding(Duration::ZERO));
    worker.await_ready();
    let begin = monotonic() + START;
    worker.run(begin, begin + WARM_UP + length);
    let cycles = worker.cycles();
    let counts = |pair: &&[Cycle]| pair[0].asked >= begin + WARM_UP;
    let times = cycles.windows(2).filter(counts);
    let mut times: Vec<_> = times.map(|pair| pair[1].asked - pair[0].asked).collect();
    times.sort_unstable();
    times
}

/// What one gets who waits for a limited time, beside a process that locks in a loop.
pub(crate) fn beside_a_loop(lock: &Lock, loops: Use) -> Vec<Cycle> {
    const FOREVER: Duration = Duration::from_secs(3600);
    let mut looping = lock.spawn(loops);
    let mut timed = lock.spawn(Use::timed());
    looping.await_ready();
    timed.await_ready();
    let begin = monotonic() + START;
    looping.run(begin, begin + FOREVER);
    timed.run(begin + WARM_UP, begin + FOREVER);
    timed.cycles()
}

/// All cycles with their processes, in the order in which they held.
fn in_order(cycles: Vec<Vec<Cycle>>) -> Vec<(usize, Cycle)> {
    let number = |(process, cycles): (usize, Vec<Cycle>)| {
        cycles.into_iter().map(move |cycle| (process, cycle))
    };
    let mut order: Vec<_> = cycles.into_iter().enumerate().flat_map(number).collect();
    order.sort_unstable_by_key(|(_, cycle)| cycle.held[0]);
    for (before, after) in order.iter().zip(&order[1..]) {
        // flock(2) has none.
        let is_later = before.1.token < after.1.token || after.1.token == 0;
        let ordered = is_later && before.1.held[1] <= after.1.held[0];
        assert!(ordered, "held at once: {before:?} {after:?}");
    }
    order
}

impl Cpus {
    fn spawn(self, number: usize, lock: &Lock, use_as: Use) -> Worker {
        let cpu = match self {
            Cpus::Any => return lock.spawn(use_as),
            Cpus::One => 1,
            Cpus::OneEach => number,
        };
        on_cpu(cpu, || lock.spawn(use_as))
    }
}

/// A process stays on the CPUs of the thread that started it.
#[cfg(target_os = "linux")]
fn on_cpu<T>(cpu: usize, start: impl FnOnce() -> T) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let before = sched_getaffinity(None).expect("the CPUs of this thread");
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)
        .unwrap_or_else(|e| eprintln!("not pinned, ratios will wander: {e}"));
    let started = start();
    sched_setaffinity(None, &before).expect("those that it had");
    started
}

#[cfg(not(target_os = "linux"))]
fn on_cpu<T>(_: usize, start: impl FnOnce() -> T) -> T {
    start()
}

/// The rounds of several subjects in turns, in an order that changes each time.
pub(crate) fn in_turns<S, R>(
    subjects: Vec<S>,
    rounds: usize,
    run: impl Fn(&S) -> R,
) -> Vec<(S, Vec<R>)> {
    let none = |subject| (subject, Vec::new());
    let mut subjects: Vec<_> = subjects.into_iter().map(none).collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..rounds {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            let (subject, rounds) = &mut subjects[subject];
            rounds.push(run(subject));
        }
    }
    subjects
}
