//! A name that protects a value, which is stored beside its lock as JSON.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::claim::{Claim, Mode};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::core::Core;
use crate::guard::LockGuard;
use crate::locker::Locker;
use crate::primitives::value_guard::LeaseMonitor;

/// A name that protects a value.
pub(crate) struct Cell<T> {
    core: Arc<Core>,
    claim: Claim,
    /// What it is as long as nothing is stored.
    init: Arc<[u8]>,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Cell<T> {
    pub(crate) fn new(locker: &Locker, name: &str, mode: Mode, init: &T) -> Result<Self> {
        let claim = Claim {
            valued: true,
            ..locker.claim(name, mode)?
        };
        Ok(Cell {
            init: to_json(name, init)?,
            core: locker.core().clone(),
            claim,
            of: PhantomData,
        })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// A guard of this name, and what it protects. If that can't be read, the guard ends by a deadline.
    pub(crate) fn open(&self, guard: LockGuard, by: &Deadline) -> Result<LeaseMonitor<T>> {
        let inside = Some(self.read(guard, by)?);
        Ok(LeaseMonitor {
            inside,
            changed: false,
        })
    }

    pub(crate) fn read(&self, mut guard: LockGuard, by: &Deadline) -> Result<(LockGuard, T)> {
        match self.parse(guard.value().as_deref()) {
            Ok(value) => Ok((guard, value)),
            Err(e) => {
                guard.end_by(by);
                Err(e)
            }
        }
    }

    pub(crate) fn get(&self) -> Result<T> {
        let values = self.core.engine.values()?;
        let stored = values.load(&self.claim.key, &Deadline::NEVER)?;
        self.parse(stored.as_deref())
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let values = self.core.engine.values()?;
        values.remove(&self.claim.key, &Deadline::NEVER)
    }

    fn value_key(&self) -> String {
        let values = self.core.engine.values();
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
            // Not what it is: that may be nobody's business.
            reason: format!(
                "{:?} error at line {}, column {}",
                e.classify(),
                e.line(),
                e.column()
            ),
        })
    }
}

impl<T> Clone for Cell<T> {
    fn clone(&self) -> Self {
        Cell {
            core: self.core.clone(),
            claim: self.claim.clone(),
            init: self.init.clone(),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.claim.key.fmt(f)
    }
}

/// What can't be read again, as a number that is none, isn't written either.
pub(super) fn to_json<T: Serialize + DeserializeOwned>(name: &str, value: &T) -> Result<Arc<[u8]>> {
    let written = serde_json::to_vec(value);
    let checked = written.and_then(|json| serde_json::from_slice::<T>(&json).map(|_| json));
    let json = checked.map_err(|e| Error::InvalidValue {
        name: name.to_owned(),
        reason: e.to_string(),
    })?;
    Ok(json.into())
}
