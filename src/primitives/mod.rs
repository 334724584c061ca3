//! Read-write locks, semaphores, several names at once, locks with a value, and what waits until a value changes: each
//! is one claim, one guard, and perhaps one watched value.
//!
//! They use `locker` and all below. What always holds here: a guard of a value stores it only while its lease is valid.

#[cfg(feature = "value")]
pub(crate) mod barrier;
#[cfg(feature = "value")]
mod condition;
#[cfg(feature = "value")]
pub(crate) mod election;
#[cfg(feature = "value")]
pub(crate) mod latch;
mod lock_all;
#[cfg(feature = "value")]
pub(crate) mod mutex;
#[cfg(feature = "value")]
pub(crate) mod once_lock;
mod read_write;
#[cfg(feature = "value")]
pub(crate) mod rwlock;
pub(crate) mod semaphore;
#[cfg(feature = "value")]
pub(crate) mod value;
#[cfg(feature = "value")]
mod watched;
