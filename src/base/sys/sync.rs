//! The locks inside this crate: those of `std`, which a panic doesn't poison.
//!
//! Those of `parking_lot` won't do: it keeps all threads of a process that wait in one table. A forked child has a copy
//! of its parent's table, with threads in it that the child doesn't have, and which perhaps was locked at that moment.
//! A thread of `std` waits at its own lock, so a child can wait for whatever it has made itself.

use std::sync::{self, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::time;

pub(crate) use std::sync::MutexGuard;

/// A mutex of `std` that can be locked again after a panic.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: it is locked.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable of `std`. A wait may end without a reason: whoever waits looks again.
#[derive(Debug, Default)]
pub(crate) struct Condvar(sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar::default()
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits for so long at most.
    pub(crate) fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> MutexGuard<'a, T> {
        let waited = self.0.wait_timeout(guard, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until then at most; `None` is never.
    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        until: impl Into<Option<Instant>>,
    ) -> MutexGuard<'a, T> {
        match until.into() {
            Some(until) => self.wait_for(guard, until.saturating_duration_since(time::now())),
            None => self.0.wait(guard).unwrap_or_else(PoisonError::into_inner),
        }
    }
}
