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

    fn parse(&self, stored: Option<&[u8]>) -> Result<T> {
        let parsed = serde_json::from_slice(stored.unwrap_or(&self.init));
        parsed.map_err(|e| Error::Corrupt {
            name: self.claim.key.name().to_owned(),
            key: self.value_key(),
            reason: why_corrupt::<T>(&e),
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
    let what = what.unwrap_or_else(|| format!("a field is wrong at line {line} column {column}"));
    format!("`{}` doesn't fit it: {what}", std::any::type_name::<T>())
}
