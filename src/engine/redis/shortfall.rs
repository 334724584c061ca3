//! WAIT: whether enough replicas have what the commands in front of it wrote.

use std::{fmt, time::Duration};

use ::redis::{ServerError, Value};

use super::{failure::Failure, settings::Replicas};
use crate::base::Deadline;

/// WAIT, behind commands that these replicas must have. One that has no answer to it has none at all.
impl Replicas {
    /// Sends it behind what is to be answered by that deadline.
    pub(super) fn append_wait(self, packed: &mut Vec<u8>, deadline: &Deadline) {
        let mut wait = ::redis::cmd("WAIT");
        let patience = self.patience(deadline.remaining()).as_millis();
        wait.arg(self.least).arg(patience);
        wait.write_packed_command(packed);
    }

    /// For how long the server waits for its replicas: never for ever, which 0 would be, and not until the deadline, by
    /// which its answer has to be here.
    fn patience(self, left: Duration) -> Duration {
        let share = self.timeout.min(left / 2);
        share.max(Duration::from_millis(1))
    }

    /// What was answered to it behind commands that were carried out.
    pub(super) fn shortfall(self, acknowledged: Value) -> Result<Option<Shortfall>, Failure> {
        let least = self.least;
        match acknowledged {
            Value::Int(have) if have >= i64::from(least) => Ok(None),
            Value::Int(have) => Ok(Some(Shortfall { have, least })),
            Value::ServerError(error) => Err(unconfirmed(error)),
            _ => Err(Failure::Other(
                "it doesn't answer WAIT like a Redis server".into(),
            )),
        }
    }
}

/// How many replicas have what was written, and how many should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shortfall {
    have: i64,
    least: u32,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortfall { have, least } = self;
        write!(
            f,
            "only {have} of its replicas confirmed the write, and min_replicas is {least}: a failover may lose it"
        )
    }
}

/// A server that was made a replica meanwhile refuses WAIT, and ends one that was under way.
fn unconfirmed(error: ServerError) -> Failure {
    let is_ended = error.code() == "UNBLOCKED";
    match Failure::from(error) {
        Failure::Other(cause) if is_ended || cause.to_string().contains("replica") => {
            Failure::Demoted(cause)
        }
        Failure::Other(cause) => {
            Failure::Other(format!("min_replicas needs the command WAIT: {cause}").into())
        }
        Failure::Denied(cause) => {
            Failure::Denied(format!("min_replicas needs the command WAIT (+wait): {cause}").into())
        }
        failure => failure,
    }
}
