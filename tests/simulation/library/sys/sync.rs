//! The locks of the simulated world.

pub(crate) use crosslock_world::sync::{Condvar, Mutex, MutexGuard};
