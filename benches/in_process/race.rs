//! Threads that lock in a loop, and what is counted of them.

use std::hint::black_box;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{self, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;

use crate::support;

/// How long the threads run before it counts.
pub(crate) const WARM_UP: Duration = Duration::from_millis(100);

pub(crate) enum Lock {
    Std(sync::Mutex<()>),
    ParkingLot(parking_lot::Mutex<()>),
    Locker(Locker),
}

/// What came out of one round.
pub(crate) struct Round {
    /// Per second.
    pub(crate) acquisitions: f64,
    pub(crate) fairness: f64,
}

/// What a thread does while it holds the lock, and as much again when it doesn't.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    length: Duration,
    steps: u64,
}

impl Work {
    pub(crate) fn none() -> Self {
        Work {
            length: Duration::ZERO,
            steps: 0,
        }
    }

    /// So many steps as take that time here, where nothing interrupts them.
    pub(crate) fn of(length: Duration) -> Self {
        const STEPS: u32 = 10_000;
        let timed = |_| {
            let start = Instant::now();
            steps(STEPS.into());
            start.elapsed()
        };
        let fastest = (0..100).map(timed).min().expect("some");
        let steps = f64::from(STEPS) * length.as_secs_f64() / fastest.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let steps = steps as u64;
        Work { length, steps }
    }

    pub(crate) fn length(self) -> Duration {
        self.length
    }
}

fn steps(count: u64) {
    (0..count).for_each(|step| _ = black_box(step));
}

impl Lock {
    /// Locks, works, and unlocks; gives how long it waited.
    fn cycle(&self, name: &str, work: Work, last: &mut u64) -> Duration {
        let asked = Instant::now();
        match self {
            Lock::Std(mutex) => {
                let _guard = mutex.lock().expect("nobody panics");
                let waited = asked.elapsed();
                steps(work.steps);
                waited
            }
            Lock::ParkingLot(mutex) => {
                let _guard = mutex.lock();
                let waited = asked.elapsed();
                steps(work.steps);
                waited
            }
            Lock::Locker(locker) => {
                let guard = locker.lock(name).expect("the lock");
                let waited = asked.elapsed();
                let token = guard.fencing_token();
                assert!(token > *last, "token {token} after {last}");
                *last = token;
                steps(work.steps);
                guard.unlock().expect("our lock");
                waited
            }
        }
    }
}

const WARMING: u8 = 0;
const COUNTING: u8 = 1;
const OVER: u8 = 2;

pub(crate) fn race(
    lock: &Lock,
    name: &str,
    threads: usize,
    work: Work,
    length: Duration,
) -> (Round, Waits) {
    let phase = AtomicU8::new(WARMING);
    let together = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let racers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    acquisitions(lock, name, work, &phase)
                })
            })
            .collect();
        together.wait();
        thread::sleep(WARM_UP);
        let start = Instant::now();
        phase.store(COUNTING, Ordering::Relaxed);
        thread::sleep(length);
        phase.store(OVER, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let of_each: Vec<_> = racers
            .into_iter()
            .map(|racer| racer.join().expect("a thread that locks"))
            .collect();
        let served: Vec<_> = of_each.iter().map(Waits::number).collect();
        let mut waits = Waits::default();
        of_each.iter().for_each(|one| waits.add(one));
        let round = Round {
            acquisitions: support::ratio(served.iter().sum(), 1) / elapsed.as_secs_f64(),
            fairness: support::fairness(&served),
        };
        (round, waits)
    })
}

/// How long one thread waited, each time that counted.
fn acquisitions(lock: &Lock, name: &str, work: Work, phase: &AtomicU8) -> Waits {
    let (mut waits, mut last) = (Waits::default(), 0);
    loop {
        let waited = lock.cycle(name, work, &mut last);
        match phase.load(Ordering::Relaxed) {
            WARMING => {}
            COUNTING => waits.count(waited),
            _ => return waits,
        }
        steps(work.steps);
    }
}

/// How many waits were how long, to about 3 %.
pub(crate) struct Waits {
    counts: Vec<usize>,
    longest: Duration,
}

/// For each power of two.
const PARTS: u32 = 32;

impl Default for Waits {
    fn default() -> Self {
        Waits {
            counts: vec![0; 64 * PARTS as usize],
            longest: Duration::ZERO,
        }
    }
}

impl Waits {
    pub(crate) fn count(&mut self, waited: Duration) {
        let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.counts[place(nanos)] += 1;
        self.longest = self.longest.max(waited);
    }

    pub(crate) fn add(&mut self, other: &Waits) {
        let counts = self.counts.iter_mut().zip(&other.counts);
        counts.for_each(|(own, other)| *own += other);
        self.longest = self.longest.max(other.longest);
    }

    fn number(&self) -> usize {
        self.counts.iter().sum()
    }

    /// A wait no shorter than this part of all.
    pub(crate) fn quantile(&self, part: f64) -> Duration {
        let (mut seen, number) = (0, self.number());
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen < number && support::ratio(seen, number) >= part {
                return Duration::from_nanos(end_of(place)).min(self.longest);
            }
        }
        self.longest
    }
}

/// Where a number of nanoseconds is counted.
fn place(nanos: u64) -> usize {
    let nanos = nanos.max(u64::from(PARTS));
    let power = nanos.ilog2();
    let part = (nanos >> (power - PARTS.ilog2())) - u64::from(PARTS);
    (power * PARTS) as usize + usize::try_from(part).expect("it is small")
}

/// The end of the numbers that are counted there.
fn end_of(place: usize) -> u64 {
    let place = u32::try_from(place).expect("it is small");
    let (power, part) = (place / PARTS, place % PARTS);
    u64::from(PARTS + part + 1) << power.saturating_sub(PARTS.ilog2())
}
