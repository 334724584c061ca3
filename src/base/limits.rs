//! The time limits of the library, each with the promise that it keeps. What users can set is in `options`; engines
//! with a server have more in `engine::net`.

use std::time::Duration;

use super::backoff::Backoff;

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

/// No thread sleeps longer without looking at what it waits for.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// The pauses of the thread that makes deferred releases: a server that is back is noticed within half a second, and
/// one that isn't costs little.
pub(crate) const DEFERRED_PAUSES: Backoff = Backoff {
    base: Duration::from_millis(20),
    cap: Duration::from_millis(500),
    jitter: 0.5,
};

/// The shortest pause after a renewal that failed. There are several tries before a lease is over, also of a short one.
pub(crate) const SHORTEST_RENEWAL_PAUSE: Duration = Duration::from_millis(5);

/// `at_least_for` keeps a lock for no longer: 100 years, which fit the arithmetic of every engine.
pub(crate) const LONGEST_KEEP: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How long memory remembers that a lock was abandoned, as the counter on a server does: nothing stays behind for
/// longer.
pub(crate) const ABANDONMENT: Duration = Duration::from_secs(24 * 3600);

/// What a call that was cancelled may take to leave the engine's queue, before a thread does it. Keeps the end of a
/// wait within 50 ms, together with the time in which I/O looks for it.
pub(crate) const CANCELLED: Duration = Duration::from_millis(10);

/// What closing a locker may take. Keeps `close` within 500 ms.
pub(crate) const CLOSE: Duration = Duration::from_millis(430);
