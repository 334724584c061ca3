//! When leases are renewed.

use std::time::Duration;

use crate::base::backoff::shortened;
use crate::base::clock::BootInstant;
use crate::base::limits::SHORTEST_RENEWAL_PAUSE;
use crate::base::options::Options;
use crate::base::validity::valid_until;

/// When leases are renewed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) ttl: Duration,
    /// `None`: never.
    pub(crate) every: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) clock_skew: Duration,
}

impl Plan {
    /// On an engine whose servers' clocks may differ by `clock_skew`.
    pub(crate) fn of(options: &Options, clock_skew: Duration) -> Self {
        let every = options.renew.then(|| options.renew_every());
        Plan {
            ttl: options.ttl,
            every,
            max_hold: options.max_hold,
            clock_skew,
        }
    }

    /// The end of a lease that was granted or renewed by a command sent after `t0`.
    pub(crate) fn valid_until(&self, t0: BootInstant) -> BootInstant {
        valid_until(t0, self.ttl, self.clock_skew)
    }

    /// When a lease that was granted or renewed at `t0` is due. A little early, at random: locks that were
    /// taken together needn't be renewed together.
    pub(crate) fn due(&self, t0: BootInstant) -> BootInstant {
        const JITTER: f64 = 0.1;
        self.every
            .map_or(BootInstant::MAX, |every| t0.plus(shortened(every, JITTER)))
    }

    /// When a lease is due that was granted now, and began at `since`. If that is long ago, and most of it is left all the same,
    /// it isn't due at once: a program that locks in a loop needn't renew each lease.
    pub(crate) fn first_due(&self, since: BootInstant, now: BootInstant) -> BootInstant {
        let due = self.due(since);
        if self.valid_until(since).since(now) < self.ttl / 2 {
            return due;
        }
        self.every
            .map_or(due, |every| due.max(now.plus(shortened(every / 2, 0.1))))
    }

    /// How long to wait after a renewal that failed: there are several tries before the lease is over.
    pub(crate) fn pause(&self, remaining: Duration) -> Duration {
        let longest = self.every.unwrap_or(Duration::MAX);
        shortened(
            (remaining / 8).min(longest).max(SHORTEST_RENEWAL_PAUSE),
            0.5,
        )
    }
}
