//! When a command whose lock can't be renewed has to stop, so that it is dead before the lease can have ended.
//!
//! Of a lease that isn't renewed any more, the command first runs on: the server may come back. When `kill_after` and the
//! margin are left, it gets the signal. When the margin is left, it is killed. When half of that is left, the watchdog
//! kills it, because this process was stopped or is late.

use std::time::Duration;

use crate::duration::text;

/// When a command is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) ttl: Duration,
    /// How long the command has from the signal to SIGKILL.
    pub(crate) kill_after: Duration,
}

impl Timing {
    /// Without a ttl, one that leaves an outage of some seconds without consequences.
    pub(crate) fn new(ttl: Option<Duration>, kill_after: Duration) -> Result<Self, String> {
        const SHORTEST: Duration = Duration::from_secs(20);
        let ttl = ttl.unwrap_or_else(|| SHORTEST.max(2 * kill_after + SHORTEST / 2));
        let timing = Timing { ttl, kill_after };
        // A renewal is due with four fifths of the ttl left; it gets a tenth before the command is told to stop.
        if ttl * 7 / 10 >= timing.notice() {
            return Ok(timing);
        }
        let enough = Duration::from_secs(((kill_after + LONGEST_MARGIN) * 3 / 2).as_secs() + 1);
        Err(format!(
            "--ttl {} leaves no time for renewals before --kill-after {}: use --ttl {} or longer, or a shorter --kill-after",
            text(ttl),
            text(kill_after),
            text(enough),
        ))
    }

    /// How often the lease is renewed: a loss is noticed that soon.
    pub(crate) fn renew_every(&self) -> Duration {
        self.ttl / 5
    }

    /// How much of the lease is left when the last process has to be dead, as far as this process sees to it.
    pub(crate) fn margin(&self) -> Duration {
        (self.ttl / 10).clamp(SHORTEST_MARGIN, LONGEST_MARGIN)
    }

    /// The same, as far as the watchdog sees to it.
    pub(crate) fn last_margin(&self) -> Duration {
        self.margin() / 2
    }

    /// How much of the lease is left when the command gets the signal.
    pub(crate) fn notice(&self) -> Duration {
        self.kill_after + self.margin()
    }
}

const SHORTEST_MARGIN: Duration = Duration::from_millis(100);
const LONGEST_MARGIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);

    #[test]
    fn default_leaves_seconds_for_an_outage() {
        for kill_after in [Duration::ZERO, S, 5 * S, 60 * S, 600 * S] {
            let timing = Timing::new(None, kill_after).expect("it fits");
            let tolerated = timing.ttl * 4 / 5 - timing.notice();
            assert!(tolerated >= 8 * S, "{kill_after:?}: {tolerated:?}");
        }
        assert_eq!(Timing::new(None, 5 * S).expect("it fits").ttl, 20 * S);
    }

    #[test]
    fn ttl_too_short_for_the_command_to_stop_is_refused_with_one_that_is_enough() {
        let refused = Timing::new(Some(5 * S), 5 * S).expect_err("it is too short");
        assert!(refused.contains("use --ttl 10 s or longer"), "{refused}");
        assert!(Timing::new(Some(10 * S), 5 * S).is_ok());
        assert!(Timing::new(Some(S), 200 * MS).is_ok());
        assert!(Timing::new(Some(100 * MS), Duration::ZERO).is_err());
    }
}
