//! What an engine with a server needs, whatever it speaks: addresses, streams with deadlines, plain or encrypted, a
//! pool of idle connections, and an order in which hosts are asked.
//!
//! It uses `base` and `engine::url` alone, and knows no engine.

pub(super) mod address;
pub(super) mod connector;
#[cfg(feature = "zookeeper")]
pub(super) mod halves;
pub(super) mod limits;
#[cfg(not(feature = "tls"))]
pub(super) mod no_tls;
pub(super) mod pool;
pub(super) mod resolver;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
pub(super) mod rotation;
pub(super) mod socket;
pub(super) mod stream;
#[cfg(feature = "tls")]
pub(super) mod tls;
#[cfg(not(feature = "tls"))]
pub(super) use no_tls as tls;

use std::time::Duration;

use self::limits::CANCEL_LATENESS;
use crate::base::clock::Deadline;

/// How long to block before looking at a deadline again: a cancellation wakes nobody.
fn slice(deadline: &Deadline) -> Duration {
    let remaining = deadline.remaining();
    match deadline.cancel() {
        Some(_) => remaining.min(CANCEL_LATENESS),
        None => remaining,
    }
}
