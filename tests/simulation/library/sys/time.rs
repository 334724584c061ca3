//! The clocks of a simulated machine.

use std::time::{Duration, Instant};

pub(crate) use crosslock_world::time::{boot, now, sleep, wall, yield_now};

/// How long ago that was; zero when it is still to come.
pub(crate) fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// Waits for so long, exactly.
pub(crate) fn spin(duration: Duration) {
    sleep(duration);
}
