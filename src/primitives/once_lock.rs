//! A value that is set once for all processes.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock as Known};
use std::{fmt, marker::PhantomData, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::value::{from_json, to_json};
use super::watched::Watched;
use crate::base::{Claim, Deadline, Error, Mode, Result};
use crate::{engine::Engine, guard::LockGuard, locker::Locker};

impl Locker {
    /// Makes a value that the first process to come sets once for all. Does no I/O.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] when `name` isn't 1 to 512 bytes long.
    /// - [`Error::Unsupported`] on a quorum of Redis servers, which has no values.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let id = locker.once_lock::<u64>("once-lock")?;
    /// assert_eq!(id.get_or_init(|| 7)?, 7);
    /// assert_eq!(id.get_or_init(|| unreachable!("it is set"))?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn once_lock<T>(&self, name: &str) -> Result<OnceLock<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        Ok(OnceLock {
            claim: self.claim_with_value(name, Mode::Exclusive)?,
            locker: self.clone(),
            known: Arc::default(),
            of: PhantomData,
        })
    }
}

/// A value that one process sets once, while others wait for it.
///
/// [`Locker::once_lock`] makes one. Keep it: it remembers the value once it has seen it.
///
/// # Guarantees
///
/// While the server keeps its data, at most one value is set, and it never changes. An initialiser runs while its
/// thread holds the lock of the name. Two initialisers run at once only if the first has lost its lease, and then its
/// value isn't stored. If an initialiser fails, panics or dies, the next one runs.
///
/// # What breaks them
///
/// - A server that loses its data loses the value. Handles that have seen it keep it.
/// - [`Mutex::set`](crate::Mutex::set) and [`Mutex::remove`](crate::Mutex::remove) of the same name change the value,
///   because a mutex stores its value in the same place.
/// - If a call returns [`Error::Unavailable`] while it stores the value, it is unknown whether the value is set. Call
///   [`get`](Self::get).
///
/// # Round trips
///
/// None once this handle has seen the value, else one to read it; with
/// [`min_replicas`](crate::LockerBuilder::min_replicas) one more if it is set. Setting the value takes two more: the
/// lock, and its release, which stores the value. A call that [waits](Self::wait) takes three to start. It then
/// receives one message, and reads the value.
///
/// # Differences from `std::sync::OnceLock`
///
/// - Every call returns a [`Result`].
/// - The calls return the value itself, as read from JSON, and not a reference.
/// - There is no `get_mut`, `take` or `into_inner`.
/// - An initialiser that calls `get_or_init` of the same name waits for itself, as in `std`.
///
/// # Examples
///
/// ```
/// # let locker = crosslock::Locker::open("memory:")?;
/// let secret = locker.once_lock::<String>("session-secret")?;
/// let secret = secret.get_or_init(|| "made by the first process".to_owned())?;
/// # assert_eq!(secret, "made by the first process");
/// # Ok::<(), crosslock::Error>(())
/// ```
pub struct OnceLock<T> {
    locker: Locker,
    claim: Claim,
    /// As JSON.
    known: Arc<Known<Arc<[u8]>>>,
    of: PhantomData<fn() -> T>,
}

/// What `get_or_try_init` finds with the lock held.
enum Found {
    Set(Arc<[u8]>),
    Unset(LockGuard),
}

impl<T: Serialize + DeserializeOwned> OnceLock<T> {
    /// Returns the value, or `None` when it isn't set. Doesn't wait for an initialiser.
    ///
    /// # Errors
    ///
    /// - [`Error::Corrupt`] when the stored value isn't a `T`.
    /// - [`Error::Unavailable`], [`Error::Denied`] and [`Error::Engine`] when the engine fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let id = locker.once_lock::<u64>("once-lock-get")?;
    /// assert_eq!(id.get()?, None);
    /// assert_eq!(id.set(7)?, Ok(()));
    /// assert_eq!(id.get()?, Some(7));
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn get(&self) -> Result<Option<T>> {
        if let Some(json) = self.known.get() {
            return self.parse(json).map(Some);
        }
        let (calls, key) = (self.locker.calls(), &self.claim.key);
        let load = |engine: &dyn Engine, by: &Deadline| engine.load(key, by);
        let mut stored = calls.ask(key.name(), load)?;
        if stored.is_some()
            && let Some(confirmed) = calls.confirm(key)?
        {
            stored = confirmed;
        }
        stored.map(|json| self.remember(json)).transpose()
    }

    /// Sets the value. If it is set already, returns `Ok(Err(value))`.
    ///
    /// Blocks while another process initialises it.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::lock`], [`Error::InvalidValue`] when `value` can't be written as JSON and read again,
    /// and those of [`MutexGuard::unlock`](crate::ValueGuard::unlock) when it can't be stored.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let id = locker.once_lock::<u64>("once-lock-set")?;
    /// assert_eq!(id.set(7)?, Ok(()));
    /// assert_eq!(id.set(8)?, Err(8));
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn set(&self, value: T) -> Result<Result<(), T>> {
        let mut value = Some(value);
        let init = || value.take().expect("it is called once");
        self.get_or_init(init)?;
        Ok(value.map_or(Ok(()), Err))
    }

    /// Returns the value. If it isn't set, calls `init` and sets it to the result.
    ///
    /// Blocks while another process initialises the value. If `init` panics, the value stays unset.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get) and [`set`](Self::set).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let id = locker.once_lock::<u64>("once-lock-init")?;
    /// assert_eq!(id.get_or_init(|| 7)?, 7);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> Result<T> {
        self.get_or_try_init(|| Ok(init()))
    }

    /// Returns the value. If it isn't set, calls `init`, which may fail: the value then stays unset, and the next
    /// caller tries.
    ///
    /// # Errors
    ///
    /// The error of `init`, and the errors of [`get_or_init`](Self::get_or_init).
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let port = locker.once_lock::<u16>("once-lock-try-init")?;
    /// let parse = |text: &str| text.parse().map_err(Box::<dyn std::error::Error>::from);
    /// assert!(port.get_or_try_init(|| parse("no number")).is_err());
    /// assert_eq!(port.get_or_try_init(|| parse("8080"))?, 8080);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_or_try_init<E: From<Error>>(
        &self,
        init: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(value) = self.get()? {
            return Ok(value);
        }
        let mut guard = match self.lock()? {
            Found::Set(json) => return Ok(self.remember(json)?),
            Found::Unset(guard) => guard,
        };
        let value = init()?;
        let json = to_json(guard.name(), &value)?;
        guard.release_storing(Some(json.clone()))?;
        let _ = self.known.set(json);
        Ok(value)
    }

    /// Blocks until the value is set, and returns it.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get), when the engine can't be reached for
    /// [`outage_timeout`](crate::LockerBuilder::outage_timeout); and [`Error::Cancelled`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let id = locker.once_lock::<u64>("once-lock-wait")?;
    /// let theirs = id.clone(); // in another process
    /// let other = std::thread::spawn(move || theirs.set(7));
    /// assert_eq!(id.wait()?, 7);
    /// # other.join().unwrap()?.unwrap();
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait(&self) -> Result<T> {
        let waited = self.wait_until(&Deadline::NEVER)?;
        waited.ok_or_else(|| Error::cancelled(self.claim.key.name()))
    }

    /// Blocks until the value is set, for at most `timeout`. Returns `None` if the timeout ends first.
    ///
    /// # Errors
    ///
    /// The errors of [`wait`](Self::wait).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let id = locker.once_lock::<u64>("once-lock-wait-for")?;
    /// assert_eq!(id.wait_for(Duration::from_millis(20))?, None);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn wait_for(&self, timeout: Duration) -> Result<Option<T>> {
        self.wait_until(&Deadline::after_by(&*self.locker.core().clock, timeout))
    }

    fn wait_until(&self, until: &Deadline) -> Result<Option<T>> {
        if let Some(json) = self.known.get() {
            return self.parse(json).map(Some);
        }
        let mut watched = Watched::new(self.locker.calls(), &self.claim.key)?;
        let found = watched.find(until, Ok)?;
        found.map(|json| self.remember(json)).transpose()
    }

    fn lock(&self) -> Result<Found> {
        let guard = self.locker.calls().lock(&self.claim)?;
        Ok(match guard.value() {
            Some(json) => Found::Set(json),
            None => Found::Unset(guard),
        })
    }

    fn remember(&self, json: Arc<[u8]>) -> Result<T> {
        let value = self.parse(&json)?;
        let _ = self.known.set(json);
        Ok(value)
    }

    fn parse(&self, json: &[u8]) -> Result<T> {
        let key = &self.claim.key;
        let value_key = || self.locker.core().engine.value_key(key);
        from_json(key.name(), value_key, json)
    }
}

// There is nothing half done that a panic could leave behind.
impl<T> UnwindSafe for OnceLock<T> {}
impl<T> RefUnwindSafe for OnceLock<T> {}

/// Another handle of the same value.
impl<T> Clone for OnceLock<T> {
    fn clone(&self) -> Self {
        OnceLock {
            locker: self.locker.clone(),
            claim: self.claim.clone(),
            known: self.known.clone(),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLock")
            .field("name", &self.claim.key.name())
            .field("is_known", &self.known.get().is_some())
            .finish()
    }
}
