//! What is locked, and how.

/// Held for a moment, by those that wait for as long as it takes.
pub(crate) const PATIENT: &str = "patient";
/// Held for a moment, by those that have no time, or not much.
pub(crate) const HASTY: &str = "hasty";
/// Held for so long that it is renewed.
pub(crate) const LONG: &str = "long";
/// Read by many, written by one.
pub(crate) const SHARED: &str = "shared";
/// Locked alone, or together with [`SHARED`].
pub(crate) const BOTH: &str = "both";
/// Protects a number, which is increased.
pub(crate) const COUNTER: &str = "counter";
/// A semaphore.
pub(crate) const PERMITS: &str = "permits";

/// A barrier, in a namespace of its own.
pub(crate) const MEETING: &str = "meeting";

pub(crate) const NAMES: [&str; 7] = [PATIENT, HASTY, LONG, SHARED, BOTH, COUNTER, PERMITS];

/// How many permits there are.
pub(crate) const MOST_PERMITS: u32 = 3;

/// The key of a lock.
pub(crate) fn key_of(name: &str) -> String {
    format!("{{crosslock:{name}}}")
}
