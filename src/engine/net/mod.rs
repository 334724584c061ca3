//! What an engine with a server needs, whatever it speaks: addresses, streams with deadlines, plain or encrypted, a
//! pool of idle connections, and an order in which hosts are asked.
//!
//! It uses `base` and `engine::url` alone, and knows no engine.

use std::time::Duration;

#[cfg(not(feature = "tls"))]
pub(super) use no_tls as tls;

use self::limits::CANCEL_LATENESS;
use crate::base::clock::Deadline;

pub(super) mod address;
pub(super) mod connector;
pub(super) mod limits;
#[cfg(not(feature = "tls"))]
pub(super) mod no_tls;
pub(super) mod pool;
pub(super) mod socket;
pub(super) mod stream;
#[cfg(feature = "tls")]
pub(super) mod tls;

/// How long to block before looking at a deadline again: a cancellation wakes nobody.
fn slice(deadline: &Deadline) -> Duration {
    let remaining = deadline.remaining();
    match deadline.cancel() {
        Some(_) => remaining.min(CANCEL_LATENESS),
        None => remaining,
    }
}
