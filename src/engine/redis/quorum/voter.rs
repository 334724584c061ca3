//! What a server of a quorum says of itself when a connection to it begins: since when it votes, and its clock, from
//! which tokens are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::redis::{FromRedisValue, Value};

use crate::base::{Token, sys::time};
use crate::engine::net::address::number;
use crate::engine::redis::{failure::Failure, reply::text_of};

/// For how long a server has run, and its clock. It is as old as the connection: a server that is started again closes
/// all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voter {
    /// It may have lost leases when it was started. Until then the longest of them are over.
    votes_from: Instant,
    /// How far its clock is ahead of the time since this machine's boot, in microseconds.
    pub(super) ahead: u64,
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
            ahead: ahead_of_boot(seconds * 1_000_000 + micros),
        })
    }

    /// Whether it may grant something.
    pub(crate) fn votes(&self) -> bool {
        self.votes_from <= time::now()
    }
}

/// What the next token is no smaller than: the most that a server's clock or a token was, and the time since. It keeps
/// how far that is ahead of the time since boot, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct TokenClock(Arc<AtomicU64>);

impl TokenClock {
    pub(super) fn now(&self) -> u64 {
        let ahead = self.0.load(Ordering::Relaxed);
        ahead.saturating_add(micros_since_boot())
    }

    /// A server's clock is so far ahead.
    pub(super) fn saw(&self, ahead: u64) {
        self.0.fetch_max(ahead, Ordering::Relaxed);
    }

    pub(super) fn granted(&self, token: Token) {
        self.saw(ahead_of_boot(token.number));
    }
}

fn ahead_of_boot(micros: u64) -> u64 {
    micros.saturating_sub(micros_since_boot())
}

fn micros_since_boot() -> u64 {
    time::boot().as_micros().try_into().unwrap_or(u64::MAX)
}
