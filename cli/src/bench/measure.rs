//! The measurements: a free lock next to the floor, and how fast a lock passes from holder to holder.

use std::time::{Duration, Instant};
use std::{sync::Barrier, thread};

use crosslock::Locker;

use super::place::Place;
use crate::status::{FAILED, Failure};

/// The lock and the floor are measured in turns of so many cycles, so that noise affects both.
const SLICE: usize = 50;

/// More samples wouldn't change the result.
const MOST: usize = 200_000;

/// The cost of a lock and an unlock without contention, next to the floor.
pub(super) struct Uncontended {
    pub(super) ours: Times,
    /// Its steps and its times, or why there is none.
    pub(super) floor: Result<(&'static str, Times), String>,
}

pub(super) fn uncontended(place: &Place, length: Duration) -> Result<Uncontended, Failure> {
    let locker = place.locker()?;
    let (mut ours, mut floors) = (Times::default(), Times::default());
    // Loads scripts and warms caches.
    slice(&mut Times::default(), || cycle(&locker, place.name()))?;
    // The first lock made the directory.
    let mut floor = place.floor();
    let end = Instant::now() + length;
    while Instant::now() < end && ours.len() < MOST {
        slice(&mut ours, || cycle(&locker, place.name()))?;
        if let Ok(floor) = &mut floor {
            slice(&mut floors, || {
                let done = (floor.cycle)();
                done.map_err(|e| Failure::broken("can't measure the floor", &e))
            })?;
        }
    }
    ours.sort();
    floors.sort();
    let floor = floor.map(|floor| (floor.words, floors));
    Ok(Uncontended { ours, floor })
}

fn slice(times: &mut Times, mut cycle: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    for _ in 0..SLICE {
        let began = Instant::now();
        cycle()?;
        times.add(began.elapsed());
    }
    Ok(())
}

fn cycle(locker: &Locker, name: &str) -> Result<(), Failure> {
    let guard = locker.lock(name)?;
    guard.unlock()?;
    Ok(())
}

const HOLD: Duration = Duration::from_millis(1);

/// Not counted: at first the lockers connect and open their inboxes.
const WARM_UP: Duration = Duration::from_millis(150);

/// How fast a lock passes between lockers that want it at the same time.
pub(super) struct Contended {
    pub(super) crowd: usize,
    /// Per second.
    pub(super) acquisitions: f64,
    /// The number of acquisitions if a hand-off cost nothing.
    pub(super) most: f64,
    /// The times between two holders.
    pub(super) gaps: Times,
    /// The acquisitions of the locker with the fewest, divided by those of the locker with the most.
    pub(super) fairness: f64,
}

/// One acquisition.
#[derive(Clone, Copy)]
struct Held {
    by: usize,
    from: Instant,
    to: Instant,
}

/// Each thread has its own locker, so they compete as processes do.
pub(super) fn contended(
    place: &Place,
    crowd: usize,
    length: Duration,
) -> Result<Contended, Failure> {
    let lockers = (0..crowd)
        .map(|_| place.locker())
        .collect::<Result<Vec<_>, _>>()?;
    let barrier = Barrier::new(crowd);
    let (barrier, name) = (&barrier, place.name());
    let begin = Instant::now() + WARM_UP;
    let end = begin + length;
    let work = |(by, locker): (usize, Locker)| {
        barrier.wait();
        hold_again_and_again(by, &locker, name, end)
    };
    let all = thread::scope(|scope| {
        let threads = lockers.into_iter().enumerate();
        let threads: Vec<_> = threads.map(|one| scope.spawn(move || work(one))).collect();
        let ends = threads.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(Failure::new(FAILED, "a thread panicked")))
        });
        ends.collect::<Result<Vec<_>, Failure>>()
    })?;
    let mut held: Vec<Held> = all.into_iter().flatten().collect();
    held.retain(|held| held.from >= begin && held.from < end);
    held.sort_unstable_by_key(|held| held.from);
    Ok(evaluated(crowd, &held, length))
}

fn hold_again_and_again(
    by: usize,
    locker: &Locker,
    name: &str,
    end: Instant,
) -> Result<Vec<Held>, Failure> {
    let mut all = Vec::new();
    while Instant::now() < end {
        let guard = locker.lock(name)?;
        let from = Instant::now();
        thread::sleep(HOLD);
        let to = Instant::now();
        guard.unlock()?;
        all.push(Held { by, from, to });
    }
    Ok(all)
}

/// `held` has the acquisitions that count, in their order.
fn evaluated(crowd: usize, held: &[Held], length: Duration) -> Contended {
    let mut gaps = Times::default();
    for (before, after) in held.iter().zip(held.iter().skip(1)) {
        gaps.add(after.from.saturating_duration_since(before.to));
    }
    gaps.sort();
    let mut served = vec![0; crowd];
    held.iter().for_each(|held| served[held.by] += 1);
    let (least, most) = (served.iter().min(), served.iter().max());
    let [least, most] = [least, most].map(|count| number(count.copied().unwrap_or(0)));
    let holding: Duration = held.iter().map(|held| held.to - held.from).sum();
    Contended {
        crowd,
        acquisitions: number(held.len()) / length.as_secs_f64(),
        most: number(held.len()) / holding.as_secs_f64().max(f64::MIN_POSITIVE),
        gaps,
        fairness: least / most.max(1.0),
    }
}

/// Samples of time.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn sort(&mut self) {
        self.0.sort_unstable();
    }

    /// Of sorted times. Zero without any.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let at = self.0.len().saturating_sub(1) * percent / 100;
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// In microseconds.
pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Counts are far below 2^52.
pub(super) fn number(count: usize) -> f64 {
    count as f64
}
