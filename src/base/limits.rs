//! The time limits of the library, each with the promise that it keeps. What users can set is in `options`.

use std::time::Duration;

/// After the deadline of a timed call: what the attempt that is on the wire may still take. Keeps `try_lock_for` within
/// its timeout and 100 ms.
pub(crate) const GRACE: Duration = Duration::from_millis(40);

/// What a release may take. Keeps `Drop` within 500 ms.
pub(crate) const RELEASE: Duration = Duration::from_millis(400);

/// What the thread of the deferred releases may take when its locker is gone. Keeps the end of threads within 100 ms.
pub(crate) const CLOSING: Duration = Duration::from_millis(60);

/// How long an idle renewal thread waits for its next guard. Keeps the end of threads within 100 ms.
pub(crate) const LINGER: Duration = Duration::from_millis(40);

/// By how much a heartbeat may be late before the engine drops the waiter that announced it: what a busy machine, or a
/// slow network, may take. A dead waiter costs the others no more than one such heartbeat.
pub(crate) const HEARTBEAT_LATENESS: Duration = Duration::from_millis(500);

/// Where many wait in one queue, each sends its heartbeats so much more seldom for every other: together they send
/// about a thousand a second, however many they are.
pub(crate) const HEARTBEAT_SHARE: Duration = Duration::from_millis(1);

/// No thread sleeps longer without looking at what it waits for.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// The limits of engines with a server.
#[cfg(feature = "redis")]
pub(crate) mod server {
    use super::Duration;
    use crate::base::backoff::Backoff;

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

    /// When no two have waited at once for as long, the waiter reads the inbox itself, and its grants wake one thread.
    pub(crate) const SINGLE_WAITER: Duration = Duration::from_millis(20);

    /// An inbox that no waiter has read for as long is read by its thread, which finds the end of the connection. Waits
    /// that follow one another more closely don't wake the thread.
    pub(crate) const UNREAD: Duration = Duration::from_secs(1);

    /// The pauses between attempts to connect an inbox. Waiters ask meanwhile, and are notified again soon after the
    /// server is back.
    pub(crate) const RECONNECT: Backoff = Backoff {
        base: Duration::from_millis(10),
        cap: Duration::from_millis(250),
        jitter: 0.5,
    };

    /// After a connection of an inbox that lasted for as long, the pauses begin anew with the shortest.
    pub(crate) const LASTING: Duration = RECONNECT.cap;
}
