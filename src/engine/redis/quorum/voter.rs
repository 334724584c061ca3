//! What a server of a quorum says of itself when a connection to it begins.

use std::time::{Duration, Instant};

use ::redis::Value;

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
    clock: (u64, Instant),
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
        Ok(Voter {
            votes_from: now + rejoin.saturating_sub(uptime),
            clock: (micros(&clock).ok_or_else(strange)?, now),
        })
    }

    /// Whether it may grant something.
    pub(crate) fn votes(&self) -> bool {
        self.votes_from <= time::now()
    }

    /// What its clock was at a time before that, if it has run as ours.
    pub(super) fn clock_at(&self, earlier: Instant) -> u64 {
        let passed = self.clock.1.saturating_duration_since(earlier).as_micros();
        (self.clock.0).saturating_sub(passed.try_into().unwrap_or(u64::MAX))
    }

    pub(super) fn clock(&self) -> (u64, Instant) {
        self.clock
    }
}

/// The answer to TIME.
fn micros(time: &Value) -> Option<u64> {
    let Value::Array(parts) = time else {
        return None;
    };
    let mut parts = parts.iter().map(|part| number::<u64>(text_of(part)?));
    let (seconds, micros) = (parts.next()??, parts.next()??);
    seconds.checked_mul(1_000_000)?.checked_add(micros)
}
