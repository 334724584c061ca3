//! Bounds on time that a busy machine doesn't break, and a slow library does.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::lateness::Probe;

/// What a measured call may take beyond its bound on a machine that wasn't late: a test waits for several threads and a
/// server, in a build without optimizations.
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

/// Measures how long something takes, and how late the machine was meanwhile.
///
/// A bound holds when no more time has passed than the bound, a constant grace and four times what the threads of a
/// `Probe` were late by in the same time. On a machine that isn't late only the grace remains.
#[derive(Debug)]
pub struct Stopwatch {
    begun: Instant,
    late: Arc<Mutex<Vec<Late>>>,
    probe: Probe,
}

impl Stopwatch {
    pub fn start() -> Self {
        let late = Arc::new(Mutex::new(Vec::new()));
        let told = late.clone();
        let probe = Probe::start(WORK, move |by| {
            let due = Instant::now() - by;
            lock(&told).push(Late { due, by });
        });
        // Its threads may take a while to start.
        let begun = Instant::now();
        Stopwatch { begun, late, probe }
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
        let late = worst(&lock(&self.late), took);
        assert!(
            took <= bound + GRACE + FACTOR * late,
            "{took:?} instead of {bound:?}, on a machine that was late by {late:?}"
        );
    }

    /// Asserts that the machine was late, which explains what was found: in some time of the length `within` it may
    /// have delayed all by the time `by`.
    #[track_caller]
    pub fn assert_late(self, by: Duration, within: Duration, found: impl Display) {
        drop(self.probe);
        let late = worst(&lock(&self.late), within);
        assert!(
            FACTOR * late >= by,
            "{found}, on a machine that was late by {late:?}"
        );
    }
}

fn lock(late: &Mutex<Vec<Late>>) -> MutexGuard<'_, Vec<Late>> {
    late.lock().unwrap_or_else(PoisonError::into_inner)
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
