//! Threads that lock in a loop, and what is counted of them.

use std::hint::black_box;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{self, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;

use crate::support::{Round, per};

/// How long the threads run before it counts.
pub(crate) const WARM_UP: Duration = Duration::from_millis(100);

pub(crate) enum Mutex {
    Std(sync::Mutex<()>),
    ParkingLot(parking_lot::Mutex<()>),
    /// With the lock's name.
    Locker(Locker, String),
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

impl Mutex {
    /// Locks, works, and unlocks; gives how long it waited.
    fn cycle(&self, work: Work, last: &mut u64) -> Duration {
        let asked = Instant::now();
        match self {
            Mutex::Std(mutex) => {
                let _guard = mutex.lock().expect("nobody panics");
                let waited = asked.elapsed();
                steps(work.steps);
                waited
            }
            Mutex::ParkingLot(mutex) => {
                let _guard = mutex.lock();
                let waited = asked.elapsed();
                steps(work.steps);
                waited
            }
            Mutex::Locker(locker, name) => {
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

pub(crate) fn race(mutex: &Mutex, threads: usize, work: Work, length: Duration) -> Round {
    let phase = AtomicU8::new(WARMING);
    let together = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let racer = |_| {
            scope.spawn(|| {
                together.wait();
                Waits::of_thread(mutex, work, &phase)
            })
        };
        let racers: Vec<_> = (0..threads).map(racer).collect();
        together.wait();
        thread::sleep(WARM_UP);
        let start = Instant::now();
        phase.store(COUNTING, Ordering::Relaxed);
        thread::sleep(length);
        phase.store(OVER, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let racers = racers.into_iter().map(|racer| racer.join());
        let waits: Vec<Waits> = racers.map(|waits| waits.expect("a thread")).collect();
        evaluate(&waits, elapsed)
    })
}

fn evaluate(threads: &[Waits], elapsed: Duration) -> Round {
    let served = || threads.iter().map(|waits| waits.count);
    let (least, most) = (served().min(), served().max());
    let mut round = Round::default()
        .with("locks/s", per(served().sum(), 1) / elapsed.as_secs_f64())
        .with("fair", per(least.unwrap_or(0), most.unwrap_or(0)));
    // As many of each wait as of every other, whichever thread it was of.
    let widest = threads.iter().map(|waits| waits.every).max().unwrap_or(1);
    for waits in threads {
        let kept = waits.kept.iter().step_by(widest / waits.every);
        kept.for_each(|&wait| round.millis("wait ms", wait));
        round.millis("longest ms", waits.longest);
    }
    round
}

/// How long one thread waited: each time that counted, or if that was too often, every second time, or every fourth...
struct Waits {
    kept: Vec<Duration>,
    every: usize,
    count: usize,
    longest: Duration,
}

impl Waits {
    const MOST: usize = 1 << 13;

    fn of_thread(mutex: &Mutex, work: Work, phase: &AtomicU8) -> Self {
        let mut waits = Waits {
            kept: Vec::with_capacity(Waits::MOST),
            every: 1,
            count: 0,
            longest: Duration::ZERO,
        };
        let mut last = 0;
        loop {
            let waited = mutex.cycle(work, &mut last);
            match phase.load(Ordering::Relaxed) {
                WARMING => {}
                COUNTING => waits.add(waited),
                _ => return waits,
            }
            steps(work.steps);
        }
    }

    fn add(&mut self, waited: Duration) {
        if self.count.is_multiple_of(self.every) {
            self.kept.push(waited);
        }
        self.count += 1;
        self.longest = self.longest.max(waited);
        if self.kept.len() == Waits::MOST {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every *= 2;
        }
    }
}
