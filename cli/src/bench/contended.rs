//! Several that want one lock: how fast it goes from one to the next.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;

use super::place::Place;
use super::times::{Times, number};
use crate::status::{FAILED, Failure};

const HOLD: Duration = Duration::from_millis(1);

/// What they do at first, when they meet and open their inboxes, isn't counted.
const WARM_UP: Duration = Duration::from_millis(150);

pub(super) struct Contended {
    pub(super) crowd: usize,
    /// Per second.
    pub(super) acquisitions: f64,
    /// What there could be, if it cost nothing to give the lock to the next.
    pub(super) most: f64,
    /// From one holder's last moment to the first of the next.
    pub(super) gaps: Times,
    /// How often the least served had it, against the most served.
    pub(super) fairness: f64,
}

/// When somebody held it.
#[derive(Clone, Copy)]
struct Held {
    by: usize,
    from: Instant,
    to: Instant,
}

/// Each has a locker of its own, so that they meet as processes do.
pub(super) fn measure(place: &Place, crowd: usize, length: Duration) -> Result<Contended, Failure> {
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

/// Of those that count, in their order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_fairness_are_of_those_that_held_it() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let held = |by, from, to| Held {
            by,
            from: at(from),
            to: at(to),
        };
        let all = [
            held(0, 0, 10),
            held(1, 12, 22),
            held(0, 24, 34),
            held(0, 36, 46),
        ];
        let found = evaluated(2, &all, Duration::from_secs(1));
        assert_eq!(found.gaps.percentile(50), Duration::from_millis(2));
        assert!((found.acquisitions - 4.0).abs() < 1e-9);
        assert!((found.most - 100.0).abs() < 1e-6);
        assert!((found.fairness - 1.0 / 3.0).abs() < 1e-9);
    }
}
