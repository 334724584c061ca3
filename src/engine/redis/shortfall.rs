//! What WAIT says: whether enough replicas have what was written before it.
//!
//! It proves nothing of a command that wrote nothing: replicas may have all that this connection wrote, and lack what
//! another has. So what must be on replicas is written by each copy of its command, or isn't believed.

use std::fmt;

use ::redis::{ServerError, Value};

use super::failure::Failure;

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
            "it has what was written, but only {have} of its replicas are known to have it, and min_replicas is {least}: a \
             failover may lose it"
        )
    }
}

/// What WAIT answered behind a command that was carried out.
pub(super) fn shortfall(acknowledged: Value, least: u32) -> Result<Option<Shortfall>, Failure> {
    match acknowledged {
        Value::Int(have) if have >= i64::from(least) => Ok(None),
        Value::Int(have) => Ok(Some(Shortfall { have, least })),
        Value::ServerError(error) => Err(unconfirmed(error)),
        _ => Err(Failure::Other(
            "it doesn't answer WAIT as a Redis server does".into(),
        )),
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
