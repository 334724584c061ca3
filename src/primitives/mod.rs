//! Read-write locks, semaphores, several names at once, and locks with a value: each is one claim, and one guard.
//!
//! They use `locker` and all below. What always holds here: a guard of a value stores it only while its lease is valid.

mod lock_all;
#[cfg(feature = "value")]
pub(crate) mod mutex;
mod read_write;
#[cfg(feature = "value")]
pub(crate) mod rwlock;
pub(crate) mod semaphore;
#[cfg(feature = "value")]
pub(crate) mod value;
