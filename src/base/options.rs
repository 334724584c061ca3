//! What can be set on a `LockerBuilder`, and what is checked of it.

use std::sync::Arc;
use std::time::Duration;

use crate::base::backoff::Backoff;
use crate::base::claim::Prefer;
use crate::base::error::{Error, Result};
use crate::base::observer::Observers;

const TTL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(24 * 3600));
const SOCKET_TIMEOUT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));
const LONGEST_LABEL: usize = 128;
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) ttl: Duration,
    pub(crate) renew_every: Option<Duration>,
    pub(crate) renew: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) backoff: Backoff,
    pub(crate) attempts: Option<u32>,
    pub(crate) outage_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) io_timeout: Duration,
    pub(crate) hand_over: Duration,
    pub(crate) prefer: Prefer,
    /// How many replicas must have what is written, where there are replicas.
    pub(crate) min_replicas: u32,
    pub(crate) replica_timeout: Duration,
    /// By how much the clocks of servers may differ that take each other's place. `None`: as the engine has it.
    pub(crate) clock_skew: Option<Duration>,
    /// What others see of this process's holders and waiters, besides host, process and thread.
    pub(crate) label: Option<Arc<str>>,
    pub(crate) observer: Observers,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ttl: Duration::from_secs(10),
            renew_every: None,
            renew: true,
            max_hold: None,
            backoff: Backoff {
                base: Duration::from_millis(1),
                cap: Duration::from_millis(100),
                jitter: 0.5,
            },
            attempts: None,
            outage_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(2),
            io_timeout: Duration::from_secs(2),
            hand_over: Duration::from_millis(1),
            prefer: Prefer::Fair,
            min_replicas: 0,
            replica_timeout: Duration::from_millis(500),
            clock_skew: None,
            label: None,
            observer: Observers::default(),
        }
    }
}

impl Options {
    pub(crate) fn renew_every(&self) -> Duration {
        self.renew_every.unwrap_or(self.ttl / 3)
    }

    /// Whether a lease ends although its holder is well.
    pub(crate) fn leases_end(&self) -> bool {
        !self.renew || self.max_hold.is_some()
    }

    pub(crate) fn check(&self) -> Result<()> {
        within("ttl", self.ttl, TTL, "100 ms to 24 h")?;
        let every = (Duration::from_millis(10), self.ttl / 2);
        let words = format!("10 ms to half the ttl of {:?}", self.ttl);
        within("renew_every", self.renew_every(), every, &words)?;
        let timeout = "10 ms to 60 s";
        within(
            "connect_timeout",
            self.connect_timeout,
            SOCKET_TIMEOUT,
            timeout,
        )?;
        within("io_timeout", self.io_timeout, SOCKET_TIMEOUT, timeout)?;
        if let Some(max_hold) = self.max_hold {
            let bounds = (Duration::from_millis(1), Duration::MAX);
            within("max_hold", max_hold, bounds, "1 ms or more")?;
        }
        within(
            "replica_timeout",
            self.replica_timeout,
            SOCKET_TIMEOUT,
            timeout,
        )?;
        let skew = (Duration::ZERO, self.ttl / 4);
        let words = format!("0 to a quarter of the ttl of {:?}", self.ttl);
        within(
            "clock_skew",
            self.clock_skew.unwrap_or_default(),
            skew,
            &words,
        )?;
        if self.attempts == Some(0) {
            return Err(invalid(
                "attempts",
                "0 is out of range: use 1 or more".into(),
            ));
        }
        self.check_label()?;
        self.check_backoff()
    }

    fn check_label(&self) -> Result<()> {
        let Some(label) = &self.label else {
            return Ok(());
        };
        if (1..=LONGEST_LABEL).contains(&label.len()) && !label.chars().any(char::is_control) {
            return Ok(());
        }
        let words = format!("it must have 1 to {LONGEST_LABEL} bytes and no control characters");
        Err(invalid("label", words))
    }

    fn check_backoff(&self) -> Result<()> {
        let Backoff { base, cap, jitter } = self.backoff;
        let bounds = (Duration::from_micros(100), LONGEST_BACKOFF);
        within("backoff", base, bounds, "a base of 100 us to 60 s")?;
        let words = format!("a cap of {base:?} (the base) to 60 s");
        within("backoff", cap, (base, LONGEST_BACKOFF), &words)?;
        if (0.0..=1.0).contains(&jitter) {
            return Ok(());
        }
        Err(invalid(
            "backoff",
            format!("{jitter} is out of range: use a jitter of 0.0 to 1.0"),
        ))
    }
}

fn within(
    option: &'static str,
    value: Duration,
    (low, high): (Duration, Duration),
    range: &str,
) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(invalid(
        option,
        format!("{value:?} is out of range: use {range}"),
    ))
}

fn invalid(option: &'static str, reason: String) -> Error {
    Error::InvalidOption { option, reason }
}
