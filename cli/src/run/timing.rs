//! When a command has to stop if its lock can't be renewed, so that it is dead before the lease can end.
//!
//! At first the command continues: the server may come back. When `kill_after` and the margin are left of the lease,
//! the command gets the signal. When the margin is left, it is killed. When half of the margin is left, the watchdog
//! kills it, because this process was stopped or is late.

use std::time::Duration;

use crate::time::text;

/// The times at which a command is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) ttl: Duration,
    /// The time between the signal and SIGKILL.
    pub(crate) kill_after: Duration,
}

impl Timing {
    /// Without a ttl, chooses one that tolerates an outage of some seconds.
    pub(crate) fn new(ttl: Option<Duration>, kill_after: Duration) -> Result<Self, String> {
        const DEFAULT: Duration = Duration::from_secs(20);
        let ttl = ttl.unwrap_or_else(|| (2 * kill_after + DEFAULT / 2).clamp(DEFAULT, LONGEST));
        let timing = Timing { ttl, kill_after };
        if timing.longest_notice() >= timing.notice() {
            return Ok(timing);
        }
        let longest = Timing {
            ttl: LONGEST,
            kill_after,
        };
        if longest.longest_notice() < longest.notice() {
            return Err(format!(
                "--kill-after {} leaves no time for renewals, because a ttl is at most 24 h: use --kill-after {} or \
                 shorter",
                text(kill_after),
                text(longest.longest_notice() - longest.margin()),
            ));
        }
        Err(format!(
            "--ttl {} leaves no time for renewals before --kill-after {}: use --ttl {} or longer, \
             or a shorter --kill-after",
            text(ttl),
            text(kill_after),
            text(Timing::shortest_ttl(kill_after)),
        ))
    }

    /// The shortest ttl that leaves time for renewals, rounded up to what `text` shows.
    fn shortest_ttl(kill_after: Duration) -> Duration {
        let with = |margin: Duration| (kill_after + margin) * 10 / 7;
        // The middle one is that of a margin of a tenth.
        let shortest = with(SHORTEST_MARGIN).max(with(LONGEST_MARGIN).min(kill_after * 5 / 3));
        let unit = match shortest.as_secs() {
            0 => Duration::from_millis(1),
            1..3600 => Duration::from_secs(1),
            _ => Duration::from_secs(60),
        };
        let units = shortest.as_nanos().div_ceil(unit.as_nanos());
        unit * u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// A renewal is due when four fifths of the ttl are left. It gets a tenth of the ttl before the command has to
    /// stop.
    fn longest_notice(&self) -> Duration {
        self.ttl * 7 / 10
    }

    /// The time between two renewals. A loss is noticed within it.
    pub(crate) fn renew_every(&self) -> Duration {
        self.ttl / 5
    }

    /// The rest of the lease at which this process kills the command.
    pub(crate) fn margin(&self) -> Duration {
        (self.ttl / 10).clamp(SHORTEST_MARGIN, LONGEST_MARGIN)
    }

    /// The rest of the lease at which the watchdog kills the command.
    pub(crate) fn last_margin(&self) -> Duration {
        self.margin() / 2
    }

    /// The rest of the lease at which the command gets the signal.
    pub(crate) fn notice(&self) -> Duration {
        self.kill_after + self.margin()
    }
}

/// The longest ttl that the library accepts.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
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
    fn command_may_take_as_long_to_stop_as_the_longest_ttl_allows() {
        const H: Duration = Duration::from_secs(3600);
        for (kill_after, enough) in [
            (13 * H, "18 h 35 min"),
            (16 * H + 47 * 60 * S, "23 h 59 min"),
        ] {
            let timing = Timing::new(None, kill_after).expect("it fits");
            assert_eq!(timing.ttl, LONGEST);
            let refused = Timing::new(Some(H), kill_after).expect_err("it is too short");
            let remedy = format!("use --ttl {enough} or longer");
            assert!(refused.contains(&remedy), "{refused}");
        }
        for (ttl, kill_after) in [
            (None, 17 * H),
            (Some(LONGEST), 17 * H),
            (None, 1_000_000 * H),
        ] {
            let refused = Timing::new(ttl, kill_after).expect_err("it is too long");
            let remedy = "use --kill-after 16 h 47 min or shorter";
            assert!(refused.contains(remedy), "{refused}");
        }
    }

    #[test]
    fn ttl_too_short_for_the_command_to_stop_is_refused_with_the_shortest_that_is_enough() {
        let refused = Timing::new(Some(5 * S), 5 * S).expect_err("it is too short");
        assert!(refused.contains("use --ttl 9 s or longer"), "{refused}");
        for millis in (0..12_000).step_by(50) {
            let (kill_after, unit) = (millis * MS, if millis < 599 { MS } else { S });
            let shortest = Timing::shortest_ttl(kill_after);
            let is_enough = |ttl| Timing::new(Some(ttl), kill_after).is_ok();
            assert!(is_enough(shortest), "{shortest:?} for {kill_after:?}");
            assert!(
                !is_enough(shortest - unit),
                "{shortest:?} for {kill_after:?}"
            );
        }
        assert!(Timing::new(Some(10 * S), 5 * S).is_ok());
        assert!(Timing::new(Some(S), 200 * MS).is_ok());
        assert!(Timing::new(Some(100 * MS), Duration::ZERO).is_err());
    }
}
