//! What is built on the guard of a lock: read-write locks, semaphores, several names, and locks with a value.

mod lock_all;
#[cfg(feature = "value")]
pub(crate) mod mutex;
pub(crate) mod rwlock;
pub(crate) mod semaphore;
#[cfg(feature = "value")]
pub(crate) mod value_guard;
#[cfg(feature = "value")]
mod value_lock;
