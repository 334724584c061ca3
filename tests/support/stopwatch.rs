//! Bounds on time that a busy machine doesn't break, and a slow library does.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lateness::{Probe, crowd};

/// What a measured call may take beyond its bound on a machine that wasn't late, and has a processor for each thread: a
/// test waits for several threads and a server, in a build without optimizations.
const GRACE: Duration = Duration::from_millis(100);
/// So many times what the probe is late by is what was measured late by at most: it has more threads to wait for than
/// the ring has, which work for longer. The most that was seen, beside busy loops and builds, is 3.6 times as much.
const FACTOR: u32 = 4;
/// For so long each thread of the probe works in a lap.
const WORK: Duration = Duration::from_micros(50);

#[derive(Clone, Copy, Debug)]
struct Late {
    due: Instant,
    by: Duration,
}

/// What the laps of a probe have shown.
#[derive(Debug, Default)]
struct Laps {
    late: Vec<Late>,
    count: u32,
    /// The sum of what each has shown.
    crowd: f64,
}

impl Laps {
    /// What a call may need where threads share processors: the more there are, the longer.
    fn grace(&self) -> Duration {
        GRACE
            .mul_f64(self.crowd / f64::from(self.count.max(1)))
            .max(GRACE)
    }
}

/// Measures how long something takes, and how late and how crowded the machine was meanwhile.
///
/// A bound holds when no more time has passed than the bound, a grace and four times what the threads of a `Probe` were
/// late by in the same time. The grace is constant, times the threads that a processor has to run. On an idle machine
/// only the constant remains.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    laps: Arc<Mutex<Laps>>,
    probe: Probe,
}

impl Stopwatch {
    pub fn start() -> Self {
        let laps = Arc::new(Mutex::new(Laps::default()));
        let told = laps.clone();
        let probe = Probe::start(WORK, move |by| {
            let (due, crowd) = (Instant::now() - by, crowd());
            let mut laps = lock(&told);
            laps.count += 1;
            laps.crowd += crowd;
            if !by.is_zero() {
                laps.late.push(Late { due, by });
            }
        });
        // Its threads may take a while to start.
        let begun = Instant::now();
        Stopwatch { begun, laps, probe }
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Asserts that not much more time than `bound` has passed, and returns how much has.
    #[track_caller]
    pub fn assert_within(self, bound: Duration) -> Duration {
        let elapsed = self.elapsed();
        self.assert_took(elapsed, bound);
        elapsed
    }

    /// The same for a time that was measured by others while this ran, and may be a part of it: what counts is the most
    /// that the machine was late by within any time of that length.
    #[track_caller]
    pub fn assert_took(self, took: Duration, bound: Duration) {
        // The lap that is under way ends, and counts.
        drop(self.probe);
        let laps = lock(&self.laps);
        let (late, grace) = (worst(&laps.late, took), laps.grace());
        assert!(
            took <= bound + grace + FACTOR * late,
            "{took:?} instead of {bound:?}, on a machine that was late by {late:?}, with a grace of {grace:?}"
        );
    }

    /// Asserts that the machine was late or crowded, which explains what was found: in some time of the length `within`
    /// it may have delayed all by the time `by`.
    #[track_caller]
    pub fn assert_late(self, by: Duration, within: Duration, found: impl Display) {
        drop(self.probe);
        let laps = lock(&self.laps);
        let (late, grace) = (worst(&laps.late, within), laps.grace());
        assert!(
            FACTOR * late + grace - GRACE >= by,
            "{found}, on a machine that was late by {late:?}, with a grace of {grace:?}"
        );
    }
}

fn lock(laps: &Mutex<Laps>) -> MutexGuard<'_, Laps> {
    laps.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most that these come to within so much time.
fn worst(late: &[Late], time: Duration) -> Duration {
    let from = |first: usize| {
        let all = late[first..].iter();
        let near = all.take_while(|one| one.due <= late[first].due + time);
        near.map(|one| one.by).sum()
    };
    (0..late.len()).map(from).max().unwrap_or_default()
}

#[track_caller]
pub fn within<T>(bound: Duration, call: impl FnOnce() -> T) -> T {
    let watch = Stopwatch::start();
    let result = call();
    watch.assert_within(bound);
    result
}
