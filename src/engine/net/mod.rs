//! What an engine with a server needs, whatever it speaks: addresses, a resolver, and sockets with deadlines.

pub(super) mod address;
pub(super) mod pool;
pub(super) mod resolver;
pub(super) mod socket;
#[cfg(feature = "tls")]
pub(super) mod tls;

use std::time::Duration;

use crate::base::clock::Deadline;

/// How long to block before looking at a deadline again: a cancellation wakes nobody.
fn slice(deadline: &Deadline) -> Duration {
    const LOOK: Duration = Duration::from_millis(25);
    let remaining = deadline.remaining();
    match deadline.cancel() {
        Some(_) => remaining.min(LOOK),
        None => remaining,
    }
}
