//! One thread, one free lock: what a cycle of lock and unlock costs, next to the floor.

use std::time::{Duration, Instant};

use crosslock::Locker;

use super::floor::Floor;
use super::place::Place;
use super::times::Times;
use crate::status::{FAILED, Failure};

/// So many cycles of one, and then of the other, so that noise meets both.
const SLICE: usize = 50;

/// More samples say no more.
const MOST: usize = 200_000;

pub(super) struct Uncontended {
    pub(super) ours: Times,
    /// Or why there is none.
    pub(super) floor: Result<Baseline, String>,
}

pub(super) struct Baseline {
    pub(super) words: &'static str,
    pub(super) times: Times,
}

pub(super) fn measure(place: &Place, length: Duration) -> Result<Uncontended, Failure> {
    let locker = place.locker()?;
    let (mut ours, mut floors) = (Times::default(), Times::default());
    // Loads scripts and warms caches.
    slice(&mut Times::default(), || cycle(&locker, place.name()))?;
    // A directory is there since the first lock.
    let mut floor = place.floor();
    let end = Instant::now() + length;
    while Instant::now() < end && ours.len() < MOST {
        slice(&mut ours, || cycle(&locker, place.name()))?;
        if let Ok(floor) = &mut floor {
            slice(&mut floors, || cycle_of(floor))?;
        }
    }
    ours.sort();
    floors.sort();
    let baseline = |floor: Floor| Baseline {
        words: floor.words(),
        times: floors,
    };
    Ok(Uncontended {
        ours,
        floor: floor.map(baseline),
    })
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

fn cycle_of(floor: &mut Floor) -> Result<(), Failure> {
    let done = floor.cycle();
    done.map_err(|e| Failure::new(FAILED, format!("the floor can't be measured: {e}")))
}
