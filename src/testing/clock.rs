//! The clock of a fake: it moves when it is told to.

use std::time::{Duration, Instant};
use std::{collections::BTreeMap, sync::Arc};

use crate::base::{BootInstant, Clock, clock::MovedInstant, sys::sync::Mutex, sys::time};

/// Both clocks in one: leases and waits go by it alike.
#[derive(Clone, Debug)]
pub(super) struct FakeClock(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    elapsed: Duration,
    /// Until when calls wait, each by its number.
    alarms: BTreeMap<u64, Instant>,
    next: u64,
}

/// A time of which the clock knows while this lives.
#[derive(Debug)]
struct Alarm {
    clock: FakeClock,
    number: u64,
}

impl FakeClock {
    pub(super) fn new() -> Self {
        FakeClock(Arc::new(Shared {
            begun: time::now(),
            state: Mutex::default(),
        }))
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.state.lock().elapsed
    }

    pub(super) fn move_by(&self, duration: Duration) {
        let mut state = self.0.state.lock();
        state.elapsed += duration;
    }

    /// How long it is until the next call's wait is over, of those that aren't yet.
    pub(super) fn next_alarm(&self) -> Option<Duration> {
        let state = self.0.state.lock();
        let now = self.0.begun + state.elapsed;
        let left = state.alarms.values().map(|at| *at - now);
        left.filter(|left| !left.is_zero()).min()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> BootInstant {
        // No lease begins at the start of the clock.
        const BEFORE: Duration = Duration::from_secs(1_000);
        BootInstant::START.plus(BEFORE + self.elapsed())
    }

    fn instant(&self) -> Instant {
        self.0.begun + self.elapsed()
    }

    fn is_moved(&self) -> bool {
        true
    }

    fn alarm(&self, at: Option<Instant>) -> Option<Arc<dyn MovedInstant>> {
        let mut state = self.0.state.lock();
        let number = state.next;
        state.next += 1;
        if let Some(at) = at {
            state.alarms.insert(number, at);
        }
        let clock = self.clone();
        Some(Arc::new(Alarm { clock, number }))
    }
}

impl MovedInstant for Alarm {
    fn now(&self) -> Instant {
        self.clock.instant()
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.clock.0.state.lock().alarms.remove(&self.number);
    }
}
