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
