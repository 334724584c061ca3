//! A lock of one name with the value that is stored beside it as JSON. Everything that has a value takes its locks
//! here.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::claim::{Claim, Mode};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::engine::Engine;
use crate::guard::LockGuard;
use crate::locker::Locker;

/// A name, the mode in which it is locked, and the type of its value.
pub(crate) struct ValueLock<T> {
    locker: Locker,
    claim: Claim,
    /// The value as long as nothing is stored, as JSON.
    init: Arc<[u8]>,
    of: PhantomData<fn() -> T>,
}

/// A held lock, and the value that came with it.
pub(crate) type WithValue<T> = (LockGuard, T);

impl<T: Serialize + DeserializeOwned> ValueLock<T> {
    pub(crate) fn new(locker: &Locker, name: &str, mode: Mode, init: &T) -> Result<Self> {
        // An engine without values is found out here, and not when the lock is held.
        locker.core().engine.values()?;
        let claim = Claim {
            valued: true,
            ..locker.claim(name, mode)?
        };
        Ok(ValueLock {
            init: to_json(name, init)?,
            locker: locker.clone(),
            claim,
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

    pub(crate) fn try_lock(&self) -> Result<Option<WithValue<T>>> {
        let lease = self.locker.calls().try_lock(&self.claim)?;
        self.read_if_held(lease, &Deadline::NEVER)
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
        let load = |engine: &dyn Engine, by: &Deadline| engine.values()?.load(key, by);
        let stored = self.locker.calls().ask(key.name(), load)?;
        self.parse(stored.as_deref())
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let key = &self.claim.key;
        let remove = |engine: &dyn Engine, by: &Deadline| engine.values()?.remove(key, by);
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
        let values = self.locker.core().engine.values();
        values.map_or_else(
            |_| String::new(),
            |values| values.value_key(&self.claim.key),
        )
    }

    fn parse(&self, stored: Option<&[u8]>) -> Result<T> {
        let parsed = serde_json::from_slice(stored.unwrap_or(&self.init));
        parsed.map_err(|e| Error::Corrupt {
            name: self.claim.key.name().to_owned(),
            key: self.value_key(),
            // Where the error is, and not what is stored there, which may be a secret.
            reason: format!(
                "{:?} error at line {}, column {}",
                e.classify(),
                e.line(),
                e.column()
            ),
        })
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
