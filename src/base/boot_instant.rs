//! A point in time, on the clock by which leases are judged.

use std::time::Duration;

/// A point in time on a clock that runs on while the machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootInstant(Duration);

impl BootInstant {
    /// Long ago.
    pub(crate) const START: BootInstant = BootInstant(Duration::ZERO);

    /// The end of a lease that nothing ends.
    pub(crate) const MAX: BootInstant = BootInstant(Duration::MAX);

    pub(crate) fn plus(self, duration: Duration) -> Self {
        BootInstant(self.0.saturating_add(duration))
    }

    /// Zero when `earlier` isn't earlier.
    pub(crate) fn since(self, earlier: BootInstant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
