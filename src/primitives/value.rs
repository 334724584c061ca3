//! What locks protect: values that are stored beside them, as JSON.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::claim::{Claim, Mode};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result, Whole};
use crate::core::Core;
use crate::guard::LockGuard;
use crate::locker::Locker;

/// A name that protects a value.
pub(crate) struct Cell<T> {
    locker: Locker,
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
            locker: locker.clone(),
            claim,
            of: PhantomData,
        })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        self.locker.core()
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
        let values = self.core().engine.values()?;
        let stored = values.load(&self.claim.key, &Deadline::NEVER)?;
        self.parse(stored.as_deref())
    }

    pub(crate) fn remove(&self) -> Result<()> {
        let values = self.core().engine.values()?;
        values.remove(&self.claim.key, &Deadline::NEVER)
    }

    fn value_key(&self) -> String {
        let values = self.core().engine.values();
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
            locker: self.locker.clone(),
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
fn to_json<T: Serialize + DeserializeOwned>(name: &str, value: &T) -> Result<Arc<[u8]>> {
    let written = serde_json::to_vec(value);
    let checked = written.and_then(|json| serde_json::from_slice::<T>(&json).map(|_| json));
    let json = checked.map_err(|e| Error::InvalidValue {
        name: name.to_owned(),
        reason: e.to_string(),
    })?;
    Ok(json.into())
}

/// A value whose lock is held. When this is dropped a value that was changed is stored, except by a panic.
pub(crate) struct LeaseMonitor<T: Serialize + DeserializeOwned> {
    /// `None` when it has ended, which only what consumes it does.
    inside: Option<(LockGuard, T)>,
    changed: bool,
}

const ENDED: &str = "what ends it consumes it";

impl<T: Serialize + DeserializeOwned> LeaseMonitor<T> {
    pub(crate) fn guard(&self) -> &LockGuard {
        &self.inside.as_ref().expect(ENDED).0
    }

    /// Stores what was changed, and releases.
    pub(crate) fn commit(mut self) -> Result<()> {
        self.end()
    }

    /// Releases.
    pub(crate) fn discard(mut self) -> Result<()> {
        self.changed = false;
        self.end()
    }

    /// Stores what was changed, and goes on reading.
    pub(crate) fn downgrade(mut self) -> Result<(LockGuard, T)> {
        let (mut guard, value) = self.inside.take().expect(ENDED);
        let changed = self.to_store(&guard, &value)?;
        Ok((guard.read_on(changed)?, value))
    }

    fn end(&mut self) -> Result<()> {
        let Some((mut guard, value)) = self.inside.take() else {
            return Ok(());
        };
        let changed = self.to_store(&guard, &value)?;
        guard.end(changed)
    }

    fn to_store(&self, guard: &LockGuard, value: &T) -> Result<Option<Arc<[u8]>>> {
        if self.changed {
            to_json(guard.name(), value).map(Some)
        } else {
            Ok(None)
        }
    }
}

impl<T: Serialize + DeserializeOwned> Deref for LeaseMonitor<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inside.as_ref().expect(ENDED).1
    }
}

impl<T: Serialize + DeserializeOwned> DerefMut for LeaseMonitor<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.changed = true;
        &mut self.inside.as_mut().expect(ENDED).1
    }
}

impl<T: Serialize + DeserializeOwned> Drop for LeaseMonitor<T> {
    fn drop(&mut self) {
        let inside = self.inside.as_ref();
        let Some((guard, _)) = inside.filter(|(guard, _)| !guard.is_inherited()) else {
            // It has ended, or is the parent's.
            return;
        };
        let panicked = guard.is_panicked();
        // Neither a logger that panics nor a value that does must end a process whose thread is unwinding.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // What a panic has left half done isn't stored. Without a change there is nothing to tell but what the
            // guard tells when it is dropped.
            if !self.changed || panicked {
                self.inside = None;
            } else if let Err(e) = self.end() {
                log::warn!("its change may be lost: {}", Whole(&e));
            }
        }));
    }
}

/// What guards of values tell, as a [`LockGuard`] does.
macro_rules! guard_facts {
    () => {
        /// Returns the name of the lock.
        pub fn name(&self) -> &str {
            self.guard().name()
        }

        /// Returns a number that is larger than that of every earlier holder: see [`LockGuard::fencing_token`].
        pub fn fencing_token(&self) -> u64 {
            self.guard().fencing_token()
        }

        /// Says whether the exclusive holder before this one crashed or panicked: see [`LockGuard::abandoned`].
        ///
        /// The value is then what the holder before that one had stored: a change is stored whole, or not at all.
        pub fn abandoned(&self) -> bool {
            self.guard().abandoned()
        }

        /// Says whether the lease is valid, as far as this process can prove it: see [`LockGuard::is_held`].
        pub fn is_held(&self) -> bool {
            self.guard().is_held()
        }

        /// Returns how much longer the lease is valid if it isn't renewed: see [`LockGuard::remaining`].
        pub fn remaining(&self) -> Duration {
            self.guard().remaining()
        }

        /// Does the same as [`is_held`](Self::is_held), for use with `?`.
        ///
        /// # Errors
        ///
        /// [`Error::Lost`](crate::Error::Lost) when the lease isn't valid any more.
        pub fn check(&self) -> Result<()> {
            self.guard().check()
        }

        /// Asks the engine whether the lock is this guard's: one round trip.
        ///
        /// # Errors
        ///
        /// Those of [`LockGuard::verify`].
        pub fn verify(&self) -> Result<()> {
            self.guard().verify()
        }

        /// Has the lock stay taken for at least so long, also when it is released earlier: see
        /// [`LockGuard::at_least_for`].
        pub fn at_least_for(&self, least: Duration) {
            self.guard().at_least_for(least);
        }

        /// Returns the channel that gets one message when the lease is gone: see [`LockGuard::lost`].
        pub fn lost(&self) -> &Receiver<Lost> {
            self.guard().lost()
        }
    };
}

pub(crate) use guard_facts;
