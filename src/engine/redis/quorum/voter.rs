//! What a server of a quorum says of itself when a connection to it begins: since when it votes, and its clock, from
//! which tokens are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::redis::{FromRedisValue, Value};

use crate::base::sys::time;
use crate::engine::net::address::number;
use crate::engine::redis::{failure::Failure, reply::text_of};

/// For how long a server has run, and its clock. It is as old as the connection: a server that is started again closes
/// all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voter {
    /// It may have lost leases when it was started. Until then the longest of them are over.
    votes_from: Instant,
    /// Its clock, in microseconds, and when that was read.
    pub(super) clock: (u64, Instant),
}

impl Voter {
    /// The commands that [`Voter::of`] takes the answers of.
    pub(crate) fn ask(commands: &mut Vec<u8>) {
        let mut info = ::redis::cmd("INFO");
        info.arg("server").write_packed_command(commands);
        ::redis::cmd("TIME").write_packed_command(commands);
    }

    pub(crate) fn of([info, clock]: [Value; 2], rejoin: Duration) -> Result<Self, Failure> {
        let now = time::now();
        for said in [&info, &clock] {
            if let Value::ServerError(error) = said {
                let cause = Failure::from(error.clone()).cause();
                let needs = "a quorum needs the commands INFO and TIME (+info +time)";
                return Err(Failure::Denied(format!("{needs}: {cause}").into()));
            }
        }
        let strange = || Failure::Other("it doesn't report its uptime".into());
        let mut lines = text_of(&info).ok_or_else(strange)?.lines();
        let uptime = lines.find_map(|line| line.strip_prefix("uptime_in_seconds:"));
        let uptime = uptime.and_then(|digits| number(digits.trim()));
        // The difference of two clocks, each in whole seconds: it may have run for a second less.
        let uptime: u64 = uptime.ok_or_else(strange)?;
        let uptime = Duration::from_secs(uptime.saturating_sub(1));
        let clock = <(u32, u32)>::from_redis_value(clock).map_err(|_| strange())?;
        let (seconds, micros): (u64, u64) = (clock.0.into(), clock.1.into());
        Ok(Voter {
            votes_from: now + rejoin.saturating_sub(uptime),
            clock: (seconds * 1_000_000 + micros, now),
        })
    }

    /// Whether it may grant something.
    pub(crate) fn votes(&self) -> bool {
        self.votes_from <= time::now()
    }
}

/// What the next token is no smaller than: the most that a server's clock or a token was, and the time since.
#[derive(Clone, Debug)]
pub(super) struct TokenClock {
    began: Instant,
    /// The most that it was when this began, as far as that is known, in microseconds.
    most: Arc<AtomicU64>,
}

impl TokenClock {
    pub(super) fn new() -> Self {
        TokenClock {
            began: time::now(),
            most: Arc::default(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        let most = self.most.load(Ordering::Relaxed);
        most.saturating_add(self.passed(time::now()))
    }

    /// A server's clock was that far then, in microseconds, or a token that large was granted.
    pub(super) fn saw(&self, clock: (u64, Instant)) {
        let at_first = self.at_first(clock);
        self.most.fetch_max(at_first, Ordering::Relaxed);
    }

    /// What a clock was when this began, if it has run as ours.
    pub(super) fn at_first(&self, (micros, then): (u64, Instant)) -> u64 {
        micros.saturating_sub(self.passed(then))
    }

    fn passed(&self, then: Instant) -> u64 {
        let passed = then.saturating_duration_since(self.began).as_micros();
        passed.try_into().unwrap_or(u64::MAX)
    }
}
