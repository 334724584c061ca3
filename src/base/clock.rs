//! The two clocks: leases are judged by one that runs on during suspend, waits by the one of `std`. And for how long a
//! lease is valid.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::base::cancel::Cancel;
use crate::base::sys::{channel, time};

/// Where the time comes from, so that tests can move it.
pub(crate) trait Clock: Send + Sync + fmt::Debug {
    /// By which leases are judged.
    fn now(&self) -> BootInstant;

    /// By which calls wait.
    fn instant(&self) -> Instant {
        time::now()
    }

    /// Whether it moves only when a test moves it: then no thread need look at it.
    fn is_moved(&self) -> bool {
        false
    }

    /// What calls that wait until then look at, if a test moves it. The clock knows of the time while this lives.
    fn alarm(&self, _at: Option<Instant>) -> Option<Arc<dyn MovedInstant>> {
        None
    }
}

/// The time by which calls wait, where a test moves it.
pub(crate) trait MovedInstant: Send + Sync + fmt::Debug {
    fn now(&self) -> Instant;
}

/// A point in time on a clock that runs on while the machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootInstant(Duration);

impl BootInstant {
    /// Long ago.
    pub(crate) const START: BootInstant = BootInstant(Duration::ZERO);

    /// The end of a lease that nothing ends.
    pub(crate) const MAX: BootInstant = BootInstant(Duration::MAX);

    pub(crate) fn plus(self, duration: Duration) -> Self {
        BootInstant(self.0.saturating_add(duration))
    }

    /// Zero when `earlier` isn't earlier.
    pub(crate) fn since(self, earlier: BootInstant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

#[derive(Debug)]
pub(crate) struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> BootInstant {
        BootInstant::START.plus(time::boot())
    }
}

/// Until when a call may take: a point in time, or never, or until somebody cancels.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    /// `None`: never.
    at: Option<Instant>,
    cancel: Option<Cancel>,
    /// `None`: the time is that of `std`.
    clock: Option<Arc<dyn MovedInstant>>,
}

impl Deadline {
    pub(crate) const NEVER: Deadline = Deadline {
        at: None,
        cancel: None,
        clock: None,
    };

    pub(crate) fn at(instant: Instant) -> Self {
        Deadline {
            at: Some(instant),
            ..Deadline::NEVER
        }
    }

    /// A duration past the end of the clock means never.
    pub(crate) fn after(duration: Duration) -> Self {
        Deadline {
            at: time::now().checked_add(duration),
            ..Deadline::NEVER
        }
    }

    /// The same, by that clock.
    pub(crate) fn after_by(clock: &dyn Clock, duration: Duration) -> Self {
        let at = clock.instant().checked_add(duration);
        Deadline {
            at,
            cancel: None,
            clock: clock.alarm(at),
        }
    }

    /// The same, over as soon as `cancel` is set.
    pub(crate) fn or(self, cancel: &Cancel) -> Self {
        Deadline {
            cancel: Some(cancel.clone()),
            ..self
        }
    }

    pub(crate) fn plus(&self, duration: Duration) -> Self {
        let at = self.at.and_then(|at| at.checked_add(duration));
        Deadline { at, ..self.clone() }
    }

    /// This deadline, but at the latest in `duration` from now.
    pub(crate) fn within(&self, duration: Duration) -> Self {
        let capped = self.now().checked_add(duration);
        let at = [self.at, capped].into_iter().flatten().min();
        Deadline { at, ..self.clone() }
    }

    fn now(&self) -> Instant {
        self.clock
            .as_ref()
            .map_or_else(time::now, |clock| clock.now())
    }

    /// Zero when it is over, `Duration::MAX` when it never is.
    pub(crate) fn remaining(&self) -> Duration {
        if self.is_cancelled() {
            return Duration::ZERO;
        }
        self.at
            .map_or(Duration::MAX, |at| at.saturating_duration_since(self.now()))
    }

    /// When it is over; `None`: never, or when a test says so.
    pub(crate) fn instant(&self) -> Option<Instant> {
        self.at.filter(|_| !self.is_moved())
    }

    /// Whether a test moves the time by which it is over.
    pub(crate) fn is_moved(&self) -> bool {
        self.clock.is_some()
    }

    pub(crate) fn is_never(&self) -> bool {
        self.at.is_none()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel().is_some_and(Cancel::is_set)
    }

    /// Sleeps for so long, or until this is over.
    pub(crate) fn sleep(&self, duration: Duration) {
        let duration = duration.min(self.remaining());
        let Some(cancel) = &self.cancel else {
            return time::sleep(duration);
        };
        let (wake, woken) = channel::bounded(1);
        let _registered = cancel.on_set(Arc::new(move || _ = wake.try_send(())));
        // A duration past the end of the channel's clock is none.
        let _ = woken.recv_timeout(duration);
    }

    /// What may end it before its time.
    pub(crate) fn cancel(&self) -> Option<&Cancel> {
        self.cancel.as_ref()
    }
}

/// The end of a lease that was granted or renewed by a command sent after `t0`.
///
/// The server's lease starts no earlier than `t0`; one percent and 2 ms cover the drift of the two clocks and
/// the server's rounding. Where servers take each other's place, their clocks may differ by `clock_skew`.
pub(crate) fn valid_until(t0: BootInstant, ttl: Duration, clock_skew: Duration) -> BootInstant {
    let margin = ttl / 100 + Duration::from_millis(2) + clock_skew;
    t0.plus(ttl.saturating_sub(margin))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::base::random::for_any;
    use crate::base::sys::sync::Mutex;

    /// A clock that moves when it is told to.
    #[derive(Debug)]
    pub(crate) struct ManualClock(Mutex<BootInstant>);

    impl ManualClock {
        pub(crate) fn new() -> Arc<Self> {
            let start = BootInstant::START.plus(Duration::from_secs(1_000));
            Arc::new(ManualClock(Mutex::new(start)))
        }

        pub(crate) fn advance(&self, by: Duration) {
            let mut now = self.0.lock();
            *now = now.plus(by);
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> BootInstant {
            *self.0.lock()
        }
    }

    #[test]
    fn times_never_wrap_and_a_cap_moves_a_deadline_only_forward() {
        let (second, now) = (Duration::from_secs(1), BootClock.now());
        assert_eq!(now.since(now.plus(second)), Duration::ZERO);
        assert_eq!(now.plus(Duration::MAX), BootInstant::MAX);
        assert_eq!(valid_until(now, second / 1000, Duration::ZERO), now);
        assert_eq!(Deadline::after(Duration::MAX).remaining(), Duration::MAX);
        let long = Deadline::after(second).plus(Duration::MAX);
        assert_eq!(long.remaining(), Duration::MAX);
        assert!(Deadline::NEVER.within(second).remaining() <= second);
        assert!(Deadline::after(second).within(2 * second).remaining() <= second);
        let cancel = Cancel::default();
        cancel.set();
        assert!(Deadline::NEVER.or(&cancel).within(second).is_over());
    }

    #[test]
    fn validity_ends_before_the_servers_lease_and_after_most_of_it() {
        for_any(|random| {
            let ttl = Duration::from_millis(random.u64(100..=86_400_000));
            let t0 = BootClock.now();
            let valid_for = valid_until(t0, ttl, Duration::ZERO).since(t0);
            assert!(valid_for + Duration::from_millis(2) < ttl, "{ttl:?}");
            assert!(valid_for > ttl * 9 / 10, "{ttl:?}");
        });
    }
}
