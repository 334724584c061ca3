//! A mutex for what may stay locked for long: callers wait for it until a time.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

use crate::base::sys::sync::{Condvar, Mutex, MutexGuard};
use crate::base::sys::time;

/// A mutex for what may stay locked for long: callers wait for it until a time.
#[derive(Debug, Default)]
pub(crate) struct TimedMutex<T> {
    is_locked: Mutex<bool>,
    unlocked: Condvar,
    /// Nobody waits for this one: it is locked by who has set `is_locked`.
    value: Mutex<T>,
}

/// A `TimedMutex` that is locked.
#[derive(Debug)]
pub(crate) struct TimedGuard<'a, T> {
    // In this order: the value is unlocked before the next may lock it.
    value: MutexGuard<'a, T>,
    _unlocks: Unlocks<'a>,
}

#[derive(Debug)]
struct Unlocks<'a> {
    is_locked: &'a Mutex<bool>,
    unlocked: &'a Condvar,
}

impl<T> From<T> for TimedMutex<T> {
    fn from(value: T) -> Self {
        TimedMutex {
            is_locked: Mutex::default(),
            unlocked: Condvar::new(),
            value: Mutex::new(value),
        }
    }
}

impl<T> TimedMutex<T> {
    /// `None`: it was locked until then.
    pub(crate) fn try_lock_until(&self, until: Instant) -> Option<TimedGuard<'_, T>> {
        let mut is_locked = self.is_locked.lock();
        while *is_locked {
            if time::now() >= until {
                return None;
            }
            is_locked = self.unlocked.wait_until(is_locked, until);
        }
        Some(self.take(is_locked))
    }

    fn take(&self, mut is_locked: MutexGuard<'_, bool>) -> TimedGuard<'_, T> {
        *is_locked = true;
        TimedGuard {
            value: self.value.lock(),
            _unlocks: Unlocks {
                is_locked: &self.is_locked,
                unlocked: &self.unlocked,
            },
        }
    }
}

impl Drop for Unlocks<'_> {
    fn drop(&mut self) {
        *self.is_locked.lock() = false;
        self.unlocked.notify_one();
    }
}

impl<T> Deref for TimedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for TimedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
