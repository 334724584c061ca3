//! A lock with a value that is stored beside it as JSON: everything that has a value takes its locks here.
//!
//! The guard, of a mutex or of a read-write lock that is held to write, stores the value at most once, when it ends: by
//! a call that consumes it, or by its drop.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::base::{Claim, Deadline, Error, ErrorChain, Mode, Result};
use crate::{engine::Engine, guard::LockGuard, locker::Locker};

/// A held lock that may change its value: [`MutexGuard`](crate::MutexGuard) and
/// [`RwLockWriteGuard`](crate::RwLockWriteGuard) are this type.
///
/// The guard dereferences to the value, as it was stored last. Borrowing it mutably (`*guard += 1`, `guard.push(..)`)
/// marks it as changed. Dropping the guard stores a changed value, releases the lock, and logs an error;
/// [`unlock`](Self::unlock) does the same and returns the error. If a panic drops the guard, the change is discarded,
/// the lock is released, and the next holder finds [`was_abandoned`](LockGuard::was_abandoned) true.
///
/// The guard has no methods, so that it hides none of the value's. Its functions take the guard as an argument:
/// `MutexGuard::unlock(guard)`. [`lease`](Self::lease) returns the [`LockGuard`], which has the name, the fencing
/// token, and the state of the lease.
///
/// `L` is the type of the lock: [`Mutex<T>`](crate::Mutex) or [`RwLock<T>`](crate::RwLock).
///
/// # Examples
///
/// ```
/// use crosslock::MutexGuard;
///
/// # let locker = crosslock::Locker::open("memory:")?;
/// let stock = locker.mutex("value-guard", vec!["apple".to_owned()])?;
/// let mut guard = stock.lock()?;
/// guard.push("pear".to_owned()); // a method of `Vec`
/// assert!(MutexGuard::lease(&guard).is_held());
/// MutexGuard::unlock(guard)?;
/// assert_eq!(stock.peek()?, ["apple", "pear"]);
/// # Ok::<(), crosslock::Error>(())
/// ```
#[must_use = "a guard that is dropped at once protects nothing: bind it, `let _guard = ...`"]
pub struct ValueGuard<T: Serialize + DeserializeOwned, L> {
    /// `None` once the guard has ended, which only its drop can find.
    pub(super) held: Option<WithValue<T>>,
    /// Whether the value was borrowed mutably.
    pub(super) changed: bool,
    /// What it holds, to lock it anew.
    pub(super) lock: Arc<ValueLock<T>>,
    of: PhantomData<fn() -> L>,
}

pub(super) const ENDED: &str = "a call that ends the guard consumes it";

impl<T: Serialize + DeserializeOwned, L> ValueGuard<T, L> {
    /// Returns the guard of the lock alone.
    ///
    /// All methods of [`LockGuard`] that take `&self` are there: `name`, `fencing_token`, `was_abandoned`, `is_held`,
    /// `remaining`, `check`, `verify`, `lost` and `at_least_for`.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::MutexGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("lease", 0u64)?;
    /// let guard = counter.lock()?;
    /// let lease = MutexGuard::lease(&guard);
    /// assert!(lease.is_held());
    /// println!("{} is {}, by token {}", lease.name(), *guard, lease.fencing_token());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn lease(this: &Self) -> &LockGuard {
        &this.held.as_ref().expect(ENDED).0
    }

    /// Stores the value if it was borrowed mutably, and releases the lock: one round trip.
    ///
    /// Returns `Ok` once a changed value is stored. One command checks that the guard still has the lock, stores the
    /// value, and releases the lock. If another thread of this process waits and gets the lease, the command only
    /// stores the value, and an unchanged value needs no command.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`](crate::Error::Lost) when the lock wasn't this guard's any more: nothing was stored.
    /// - [`Error::InvalidValue`](crate::Error::InvalidValue) when the value can't be written as JSON and read again:
    ///   nothing was stored, and the lock is released.
    /// - [`Error::Unavailable`](crate::Error::Unavailable), [`Error::Denied`](crate::Error::Denied),
    ///   [`Error::Conflict`](crate::Error::Conflict) and [`Error::Engine`](crate::Error::Engine) when the engine can't
    ///   be reached or fails: nobody knows whether the value was stored. Lock again and read it.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::MutexGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("unlock", 0u64)?;
    /// let mut guard = counter.lock()?;
    /// *guard += 1;
    /// MutexGuard::unlock(guard)?; // `drop(guard)` would only log an error
    /// assert_eq!(counter.peek()?, 1);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn unlock(mut this: Self) -> Result<()> {
        this.end()
    }

    /// Releases the lock, and stores nothing: one round trip.
    ///
    /// The next holder finds the value as it was stored before, and [`was_abandoned`](LockGuard::was_abandoned) false.
    ///
    /// # Errors
    ///
    /// The errors of [`LockGuard::unlock`].
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::MutexGuard;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let counter = locker.mutex("discard", 7u64)?;
    /// let mut guard = counter.lock()?;
    /// *guard = 100;
    /// MutexGuard::discard(guard)?;
    /// assert_eq!(counter.peek()?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn discard(mut this: Self) -> Result<()> {
        this.changed = false;
        this.end()
    }

    pub(crate) fn new(held: WithValue<T>, lock: &Arc<ValueLock<T>>) -> Self {
        ValueGuard {
            held: Some(held),
            changed: false,
            lock: lock.clone(),
            of: PhantomData,
        }
    }

    /// Changes the value, stores it, and releases.
    pub(crate) fn update<R>(mut this: Self, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        let outcome = change(&mut this);
        ValueGuard::unlock(this)?;
        Ok(outcome)
    }

    /// The same for a change that can fail: then nothing is stored.
    pub(crate) fn try_update<R, E: From<Error>>(
        mut this: Self,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let outcome = change(&mut this);
        match outcome {
            Ok(_) => ValueGuard::unlock(this)?,
            // What goes wrong with the release is logged.
            Err(_) => this.changed = false,
        }
        outcome
    }

    /// Stores the value if it was borrowed mutably, and goes on reading.
    pub(crate) fn downgrade_storing(mut this: Self) -> Result<WithValue<T>> {
        let (mut lease, value) = this.held.take().expect(ENDED);
        let changed = this.to_store(&lease, &value)?;
        Ok((lease.downgrade_storing(changed)?, value))
    }

    pub(super) fn end(&mut self) -> Result<()> {
        let Some((mut lease, value)) = self.held.take() else {
            return Ok(());
        };
        let changed = self.to_store(&lease, &value)?;
        lease.release_storing(changed)
    }

    fn to_store(&self, lease: &LockGuard, value: &T) -> Result<Option<Arc<[u8]>>> {
        if self.changed {
            to_json(lease.name(), value).map(Some)
        } else {
            Ok(None)
        }
    }
}

impl<T: Serialize + DeserializeOwned, L> Deref for ValueGuard<T, L> {
    type Target = T;

    fn deref(&self) -> &T {
        let (lease, value) = self.held.as_ref().expect(ENDED);
        lease.used_here();
        value
    }
}

/// Marks the value as changed: it is stored when the guard ends.
impl<T: Serialize + DeserializeOwned, L> DerefMut for ValueGuard<T, L> {
    fn deref_mut(&mut self) -> &mut T {
        self.changed = true;
        let (lease, value) = self.held.as_mut().expect(ENDED);
        lease.used_here();
        value
    }
}

impl<T: Serialize + DeserializeOwned, L> Drop for ValueGuard<T, L> {
    fn drop(&mut self) {
        let Some((lease, _)) = &self.held else {
            return;
        };
        if lease.is_inherited() {
            // It is the parent's, which stores the value itself.
            return;
        }
        let panicked = lease.is_panicked();
        // Neither a logger that panics nor a value that does must end a process whose thread is unwinding.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // A panic may have left the change half done. Without a change, the drop of the lock's own guard
            // releases it and logs.
            if !self.changed || panicked {
                self.held = None;
            } else if let Err(e) = self.end() {
                log::warn!(
                    "the value of a dropped guard may not have been stored: {}",
                    ErrorChain(&e)
                );
            }
        }));
    }
}

impl<T: Serialize + DeserializeOwned + fmt::Debug, L> fmt::Debug for ValueGuard<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueGuard")
            .field("value", &**self)
            .field("lease", Self::lease(self))
            .finish()
    }
}

/// A name, the mode in which it is locked, and the type of its value.
pub(crate) struct ValueLock<T> {
    pub(super) locker: Locker,
    pub(super) claim: Claim,
    /// The value as long as nothing is stored, as JSON.
    init: Arc<[u8]>,
    of: PhantomData<fn() -> T>,
}

/// A held lock, and the value that came with it.
pub(crate) type WithValue<T> = (LockGuard, T);

impl<T: Serialize + DeserializeOwned> ValueLock<T> {
    pub(crate) fn new(locker: &Locker, name: &str, mode: Mode, init: &T) -> Result<Self> {
        Ok(ValueLock {
            claim: locker.claim_with_value(name, mode)?,
            init: to_json(name, init)?,
            locker: locker.clone(),
            of: PhantomData,
        })
    }

    /// The same name and value, to be locked in another mode.
    pub(crate) fn in_mode(&self, mode: Mode) -> Self {
        let claim = Claim {
            mode,
            ..self.claim.clone()
        };
        ValueLock {
            claim,
            ..self.clone()
        }
    }

    pub(crate) fn lock(&self) -> Result<WithValue<T>> {
        let lease = self.locker.calls().lock(&self.claim)?;
        self.read(lease, &Deadline::NEVER)
    }

    /// The same, however few attempts the options allow a call.
    pub(super) fn lock_again(&self) -> Result<WithValue<T>> {
        let lease = self.locker.calls().wait(&self.claim)?;
        self.read(lease, &Deadline::NEVER)
    }

    pub(crate) fn try_lock(&self) -> Result<Option<WithValue<T>>> {
        let lease = self.locker.calls().try_lock(&self.claim)?;
        self.read_if_held(lease, &Deadline::NEVER)
    }

    pub(super) fn lock_until(&self, until: &Deadline) -> Result<Option<WithValue<T>>> {
        let lease = self.locker.calls().wait_until(&self.claim, until.clone())?;
        self.read_if_held(lease, until)
    }

    pub(crate) fn try_lock_for(&self, timeout: Duration) -> Result<Option<WithValue<T>>> {
        let by = Deadline::after(timeout);
        let lease = self.locker.calls().try_lock_for(&self.claim, timeout)?;
        self.read_if_held(lease, &by)
    }

    pub(crate) fn try_lock_until(&self, deadline: Instant) -> Result<Option<WithValue<T>>> {
        let lease = self.locker.calls().try_lock_until(&self.claim, deadline)?;
        self.read_if_held(lease, &Deadline::at(deadline))
    }

    pub(crate) fn get(&self) -> Result<T> {
        let key = &self.claim.key;
        let load = |engine: &dyn Engine, by: &Deadline| engine.load(key, by);
        let stored = self.locker.calls().ask(key.name(), load)?;
        self.parse(stored.as_deref())
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let key = &self.claim.key;
        let remove = |engine: &dyn Engine, by: &Deadline| engine.remove(key, by);
        self.locker.calls().ask(key.name(), remove)
    }

    fn read_if_held(
        &self,
        lease: Option<LockGuard>,
        by: &Deadline,
    ) -> Result<Option<WithValue<T>>> {
        lease.map(|lease| self.read(lease, by)).transpose()
    }

    /// If the value can't be read, the lock is released by the deadline of the call that took it.
    fn read(&self, mut lease: LockGuard, by: &Deadline) -> Result<WithValue<T>> {
        match self.parse(lease.value().as_deref()) {
            Ok(value) => Ok((lease, value)),
            Err(e) => {
                lease.release_by(by);
                Err(e)
            }
        }
    }

    fn value_key(&self) -> String {
        self.locker.core().engine.value_key(&self.claim.key)
    }

    pub(super) fn parse(&self, stored: Option<&[u8]>) -> Result<T> {
        let stored = stored.unwrap_or(&self.init);
        from_json(self.claim.key.name(), || self.value_key(), stored)
    }
}

impl<T> Clone for ValueLock<T> {
    fn clone(&self) -> Self {
        ValueLock {
            locker: self.locker.clone(),
            claim: self.claim.clone(),
            init: self.init.clone(),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for ValueLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.claim.key.fmt(f)
    }
}

/// Refuses a value that could be written but not read again, as a float that is no number.
pub(crate) fn to_json<T: Serialize + DeserializeOwned>(name: &str, value: &T) -> Result<Arc<[u8]>> {
    let written = serde_json::to_vec(value);
    let checked = written.and_then(|json| serde_json::from_slice::<T>(&json).map(|_| json));
    let json = checked.map_err(|e| Error::InvalidValue {
        name: name.to_owned(),
        reason: e.to_string(),
    })?;
    Ok(json.into())
}

/// `key` says where it is stored.
pub(crate) fn from_json<T: DeserializeOwned>(
    name: &str,
    key: impl FnOnce() -> String,
    json: &[u8],
) -> Result<T> {
    serde_json::from_slice(json).map_err(|e| Error::Corrupt {
        name: name.to_owned(),
        key: key(),
        reason: why_corrupt::<T>(&e),
    })
}

/// What serde says of it, without what is stored there, which may be a secret.
fn why_corrupt<T>(error: &serde_json::Error) -> String {
    // Of a value it shows the kind and the value; of an error that a type of the program makes, anyone knows what.
    const KINDS: [&str; 8] = [
        "string",
        "integer",
        "floating point",
        "boolean",
        "character",
        "null",
        "map",
        "sequence",
    ];
    let text = error.to_string();
    let what = match text.split_once(": ") {
        Some((invalid @ ("invalid type" | "invalid value" | "invalid length"), rest)) => {
            let kind = KINDS.iter().find(|kind| rest.starts_with(**kind));
            let expected = rest
                .rsplit_once(", expected ")
                .map(|(_, expected)| expected);
            let expected = expected.unwrap_or("another");
            kind.map(|kind| format!("{invalid}: {kind}, expected {expected}"))
        }
        _ if error.is_data() => {
            let is_safe = ["missing field", "duplicate field", "unknown field"];
            let is_safe = is_safe.iter().any(|start| text.starts_with(start));
            is_safe.then(|| text.clone())
        }
        _ => Some(text.clone()),
    };
    let (line, column) = (error.line(), error.column());
    let what = what.unwrap_or_else(|| format!("invalid field at line {line} column {column}"));
    format!(
        "it can't be read as `{}`: {what}",
        std::any::type_name::<T>()
    )
}
