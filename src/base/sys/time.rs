//! The system's clocks, and sleep.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) use super::platform::boot;

/// The time by which calls wait.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How long ago that was; zero when it is still to come.
pub(crate) fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// The time since the Unix epoch, which somebody may set back.
pub(crate) fn wall() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

pub(crate) fn sleep(duration: Duration) {
    thread::sleep(duration);
}

/// Waits for so long and keeps the processor: for times that are shorter than any sleep.
pub(crate) fn spin(duration: Duration) {
    let began = now();
    while since(began) < duration {
        std::hint::spin_loop();
    }
}

/// Lets other threads run first.
pub(crate) fn yield_now() {
    thread::yield_now();
}
