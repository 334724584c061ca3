//! Locks and condition variables on which a thread of the world waits.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::scheduler::{block, may_yield, new_wait, with};
use crate::time;

/// What is waited for, once somebody has to. Zero: nobody has yet.
#[derive(Debug, Default)]
pub(crate) struct WaitId(AtomicU64);

impl WaitId {
    pub(crate) const fn new() -> Self {
        WaitId(AtomicU64::new(0))
    }

    pub(crate) fn get(&self) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => {
                let id = new_wait();
                self.0.store(id, Ordering::Relaxed);
                id
            }
            id => id,
        }
    }

    pub(crate) fn wake(&self, all: bool) {
        let id = self.0.load(Ordering::Relaxed);
        if id != 0 {
            with(|inside| inside.wake(id, all));
        }
    }
}

#[derive(Debug, Default)]
pub struct Mutex<T> {
    unlocked: WaitId,
    value: sync::Mutex<T>,
}

pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` while it is being unlocked.
    value: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Mutex {
            unlocked: WaitId::new(),
            value: sync::Mutex::new(value),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        may_yield();
        self.lock_at_once()
    }

    fn lock_at_once(&self) -> MutexGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            block(Some(self.unlocked.get()), None);
        }
    }

    /// `None`: it is locked.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let value = Some(value);
        Some(MutexGuard { mutex: self, value })
    }

    pub fn into_inner(self) -> T {
        self.value
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.mutex.unlocked.wake(false);
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is locked")
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[derive(Debug, Default)]
pub struct Condvar(WaitId);

impl Condvar {
    #[must_use]
    pub fn new() -> Self {
        Condvar::default()
    }

    pub fn notify_one(&self) {
        self.0.wake(false);
    }

    pub fn notify_all(&self) {
        self.0.wake(true);
    }

    /// Waits for so long at most.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, most: Duration) -> MutexGuard<'a, T> {
        let due = with(|inside| time::due_in(inside, most));
        self.wait(guard, Some(due))
    }

    /// Waits until then at most; `None` is never.
    pub fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        until: impl Into<Option<Instant>>,
    ) -> MutexGuard<'a, T> {
        match until.into() {
            Some(until) => self.wait_for(guard, until.saturating_duration_since(time::now())),
            None => self.wait(guard, None),
        }
    }

    fn wait<'a, T>(&self, guard: MutexGuard<'a, T>, until: Option<u64>) -> MutexGuard<'a, T> {
        let (mutex, id) = (guard.mutex, self.0.get());
        // No other thread runs between the two.
        drop(guard);
        block(Some(id), until);
        mutex.lock_at_once()
    }
}
