//! What an engine with a server needs, whatever it speaks: addresses, streams with deadlines, plain or encrypted, a
//! pool of idle connections, an order in which hosts are asked, and time limits, each with the promise that it keeps.
//!
//! It uses `base` and `engine::url` alone, and knows no engine.

use std::time::Duration;

#[cfg(not(feature = "tls"))]
pub(super) use no_tls as tls;

use crate::base::{Backoff, Deadline};

pub(super) mod address;
pub(super) mod connector;
#[cfg(not(feature = "tls"))]
pub(super) mod no_tls;
pub(super) mod pool;
pub(super) mod socket;
pub(super) mod stream;
#[cfg(feature = "tls")]
pub(super) mod tls;

/// How long I/O goes on after it was cancelled. Keeps the end of threads within 100 ms.
pub(crate) const CANCEL_LATENESS: Duration = Duration::from_millis(25);

/// What a connection that was idle gets at least of the time of a call, so that a round trip fits in. It gets half
/// of a longer time: the rest is for a new connection, and keeps the call within its deadline.
pub(crate) const SHORTEST_SHARE: Duration = Duration::from_millis(100);

/// A connection that was used within this time is used again without a look whether it still works: no server
/// stops and starts so fast. Spares a system call.
pub(crate) const IN_USE: Duration = Duration::from_millis(2);

/// A connection that was idle for longer is closed, not used: something on the way may have forgotten it.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// How long the first waiter of an inbox waits for its channel to be confirmed, before it goes on by asking. Its own
/// deadline counts, too.
pub(crate) const FIRST_SUBSCRIPTION: Duration = Duration::from_millis(100);

/// A channel that had no waiter for as long is given up: an idle locker has no connection for its inbox, and a
/// namespace that isn't used any more takes no room.
pub(crate) const CHANNEL_UNUSED: Duration = Duration::from_secs(10);

/// A server that sent nothing to an inbox for as long is asked whether it is there, so that a connection that died
/// silently is found.
pub(crate) const PUBSUB_SILENCE: Duration = Duration::from_secs(30);

/// The pauses between attempts to connect an inbox. Waiters ask meanwhile, and are notified again soon after the
/// server is back.
pub(crate) const RECONNECT: Backoff = Backoff {
    base: Duration::from_millis(10),
    cap: Duration::from_millis(250),
    jitter: 0.5,
};

/// After a connection of an inbox that lasted for as long, the pauses begin anew with the shortest.
pub(crate) const LASTING: Duration = RECONNECT.cap;

/// How long to block before looking at a deadline again: a cancellation wakes nobody.
pub(crate) fn slice(deadline: &Deadline) -> Duration {
    let remaining = deadline.remaining();
    match deadline.cancel() {
        Some(_) => remaining.min(CANCEL_LATENESS),
        None => remaining,
    }
}
