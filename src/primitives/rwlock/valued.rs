//! A read-write lock and what it protects.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::claim::{Claim, Mode};
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::guard::LockGuard;
use crate::lease::monitor::Lost;
use crate::locker::Locker;
use crate::primitives::value_guard::{LeaseMonitor, guard_facts};
use crate::primitives::value_lock::Cell;

impl Locker {
    /// Returns a read-write lock that protects a value, which is stored beside it and shared by all who use that name.
    ///
    /// `init` is what the value is until one is stored. Nothing is asked of the engine. The value is the same as
    /// that of a [`mutex`](Self::mutex) of that name.
    ///
    /// # Errors
    ///
    /// Those of [`mutex`](Self::mutex), and [`Error::Unsupported`](crate::Error::Unsupported) on `file:`.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let config = lock.rwlock("rwlock-example", String::from("a"))?;
    /// config.set("b".to_owned())?;
    /// assert_eq!(*config.read()?, "b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn rwlock<T>(&self, name: &str, init: T) -> Result<RwLock<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        let reading = Cell::new(self, name, Mode::Shared, &init)?;
        let writing = Claim {
            mode: Mode::Exclusive,
            ..reading.claim().clone()
        };
        Ok(RwLock { reading, writing })
    }
}

/// A lock across processes that many may hold to read, or one to write, and the value that it protects.
///
/// It is made by [`Locker::rwlock`], and cheap to clone. The value comes with the lock, as that of a [`Mutex`](crate::Mutex) does, and is
/// stored in the same way when a writer releases. Who goes first is said at [`Locker::read`].
pub struct RwLock<T> {
    reading: Cell<T>,
    writing: Claim,
}

impl<T: Serialize + DeserializeOwned> RwLock<T> {
    /// Takes the lock to read, blocking while it is held to write, and reads the value with it.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::read`]; [`Error::Corrupt`](crate::Error::Corrupt) when what is stored is no `T`.
    pub fn read(&self) -> Result<RwLockReadGuard<T>> {
        let guard = self.reading.core().lock(self.reading.claim())?;
        let (guard, value) = self.reading.read(guard, &Deadline::NEVER)?;
        Ok(RwLockReadGuard { guard, value })
    }

    /// Tries to take the lock to read once, without waiting.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_read`], and `Corrupt`.
    pub fn try_read(&self) -> Result<Option<RwLockReadGuard<T>>> {
        let guard = self.reading.core().try_lock(self.reading.claim())?;
        self.open_to_read(guard, &Deadline::NEVER)
    }

    /// Tries to take the lock to read for as long as `timeout`.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_read_for`], and `Corrupt`.
    pub fn try_read_for(&self, timeout: Duration) -> Result<Option<RwLockReadGuard<T>>> {
        let (core, by) = (self.reading.core(), Deadline::after(timeout));
        let guard = core.try_lock_for(self.reading.claim(), timeout)?;
        self.open_to_read(guard, &by)
    }

    /// Does the same as [`try_read_for`](Self::try_read_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_read_for`](Self::try_read_for).
    pub fn try_read_until(&self, deadline: Instant) -> Result<Option<RwLockReadGuard<T>>> {
        let core = self.reading.core();
        let guard = core.try_lock_until(self.reading.claim(), deadline)?;
        self.open_to_read(guard, &Deadline::at(deadline))
    }

    /// Takes the lock to write, blocking while others read or write, and reads the value with it.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::write`], and `Corrupt`.
    pub fn write(&self) -> Result<RwLockWriteGuard<T>> {
        let guard = self.reading.core().lock(&self.writing)?;
        let held = self.reading.open(guard, &Deadline::NEVER)?;
        Ok(RwLockWriteGuard(held))
    }

    /// Tries to take the lock to write once, without waiting.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_write`], and `Corrupt`.
    pub fn try_write(&self) -> Result<Option<RwLockWriteGuard<T>>> {
        let guard = self.reading.core().try_lock(&self.writing)?;
        self.open_to_write(guard, &Deadline::NEVER)
    }

    /// Tries to take the lock to write for as long as `timeout`.
    ///
    /// # Errors
    ///
    /// Those of [`Locker::try_write_for`], and `Corrupt`.
    pub fn try_write_for(&self, timeout: Duration) -> Result<Option<RwLockWriteGuard<T>>> {
        let (core, by) = (self.reading.core(), Deadline::after(timeout));
        let guard = core.try_lock_for(&self.writing, timeout)?;
        self.open_to_write(guard, &by)
    }

    /// Does the same as [`try_write_for`](Self::try_write_for), until a point in time.
    ///
    /// # Errors
    ///
    /// Those of [`try_write_for`](Self::try_write_for).
    pub fn try_write_until(&self, deadline: Instant) -> Result<Option<RwLockWriteGuard<T>>> {
        let core = self.reading.core();
        let guard = core.try_lock_until(&self.writing, deadline)?;
        self.open_to_write(guard, &Deadline::at(deadline))
    }

    /// Takes the lock to write, changes the value, stores it, and releases, as [`Mutex::update`](crate::Mutex::update)
    /// does: two round trips.
    ///
    /// # Errors
    ///
    /// Those of [`Mutex::update`](crate::Mutex::update).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let lock = crosslock::Locker::open("memory:")?;
    /// let config = lock.rwlock("rwlock-update-example", vec![1])?;
    /// config.update(|numbers| numbers.push(2))?;
    /// assert_eq!(*config.read()?, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        let mut guard = self.write()?;
        let outcome = change(&mut guard);
        guard.commit()?;
        Ok(outcome)
    }

    /// Takes the lock to write, stores another value, and releases: two round trips.
    ///
    /// # Errors
    ///
    /// Those of [`update`](Self::update).
    pub fn set(&self, value: T) -> Result<()> {
        self.update(|stored| *stored = value)
    }

    /// Reads the value without locking: what was stored last. One round trip.
    ///
    /// # Errors
    ///
    /// `Corrupt` when what is stored is no `T`, and the errors of the engine.
    pub fn get(&self) -> Result<T> {
        self.reading.get()
    }

    /// Deletes what is stored, without locking, so that the value is `init` again. One round trip.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn remove(&self) -> Result<()> {
        self.reading.remove()
    }

    fn open_to_read(
        &self,
        guard: Option<LockGuard>,
        by: &Deadline,
    ) -> Result<Option<RwLockReadGuard<T>>> {
        let read = guard.map(|guard| self.reading.read(guard, by));
        let read = read.transpose()?;
        Ok(read.map(|(guard, value)| RwLockReadGuard { guard, value }))
    }

    fn open_to_write(
        &self,
        guard: Option<LockGuard>,
        by: &Deadline,
    ) -> Result<Option<RwLockWriteGuard<T>>> {
        let held = guard.map(|guard| self.reading.open(guard, by));
        Ok(held.transpose()?.map(RwLockWriteGuard))
    }
}

// What it protects isn't in it, and there is nothing half done that a panic could leave behind.
impl<T> UnwindSafe for RwLock<T> {}
impl<T> RefUnwindSafe for RwLock<T> {}

/// Another handle of the same lock and value.
impl<T> Clone for RwLock<T> {
    fn clone(&self) -> Self {
        RwLock {
            reading: self.reading.clone(),
            writing: self.writing.clone(),
        }
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RwLock").field(&self.reading).finish()
    }
}

/// An [`RwLock`] that is held to read, and its value, as it was when the lock was taken: no writer changes it meanwhile.
///
/// Its own methods hide those of the value that have the same name: write `(*guard).name()` for these.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct RwLockReadGuard<T> {
    guard: LockGuard,
    value: T,
}

impl<T> RwLockReadGuard<T> {
    /// Releases the lock, and says what went wrong: one round trip.
    ///
    /// # Errors
    ///
    /// Those of [`LockGuard::unlock`].
    pub fn unlock(self) -> Result<()> {
        self.guard.unlock()
    }

    guard_facts!();

    fn guard(&self) -> &LockGuard {
        &self.guard
    }
}

impl<T> Deref for RwLockReadGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockReadGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLockReadGuard")
            .field("value", &**self)
            .field("guard", self.guard())
            .finish()
    }
}

/// An [`RwLock`] that is held to write, and its value.
///
/// What [`MutexGuard`](crate::MutexGuard) says of storing and discarding holds here, too.
///
/// Its own methods hide those of the value that have the same name: write `(*guard).name()` for these.
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct RwLockWriteGuard<T: Serialize + DeserializeOwned>(LeaseMonitor<T>);

impl<T: Serialize + DeserializeOwned> RwLockWriteGuard<T> {
    /// Stores the value, if it was borrowed mutably, and releases the lock: one round trip.
    ///
    /// # Errors
    ///
    /// Those of [`MutexGuard::commit`](crate::MutexGuard::commit).
    pub fn commit(self) -> Result<()> {
        self.0.commit()
    }

    /// Does the same as [`commit`](Self::commit).
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit).
    pub fn unlock(self) -> Result<()> {
        self.0.commit()
    }

    /// Releases the lock, and stores nothing: one round trip.
    ///
    /// # Errors
    ///
    /// Those of [`LockGuard::unlock`].
    pub fn discard(self) -> Result<()> {
        self.0.discard()
    }

    /// Stores the value, if it was borrowed mutably, and goes on reading it, without a moment in which another could
    /// write: one round trip. Those that wait to read are let in with it.
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit); the lock is then released.
    pub fn downgrade(self) -> Result<RwLockReadGuard<T>> {
        let (guard, value) = self.0.downgrade()?;
        Ok(RwLockReadGuard { guard, value })
    }

    guard_facts!();

    fn guard(&self) -> &LockGuard {
        self.0.guard()
    }
}

impl<T: Serialize + DeserializeOwned> Deref for RwLockWriteGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Serialize + DeserializeOwned> DerefMut for RwLockWriteGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Serialize + DeserializeOwned + fmt::Debug> fmt::Debug for RwLockWriteGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLockWriteGuard")
            .field("value", &**self)
            .field("guard", self.guard())
            .finish()
    }
}
