//! What is locked.

/// Held for a moment.
pub(crate) const SHORT: &str = "short";
/// Held for so long that it is renewed; also by the command of `crosslock run`.
pub(crate) const LONG: &str = "long";
/// Read by many, written by one.
pub(crate) const SHARED: &str = "shared";
/// Protects a number, which is increased.
pub(crate) const COUNTER: &str = "counter";
/// A semaphore.
pub(crate) const PERMITS: &str = "permits";

pub(crate) const NAMES: [&str; 5] = [SHORT, LONG, SHARED, COUNTER, PERMITS];

/// How many permits there are.
pub(crate) const MOST_PERMITS: u32 = 3;
