//! The guard of a lock, together with the value that the lock protects.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::error::{Result, Whole};
use crate::guard::LockGuard;
use crate::primitives::value_lock::to_json;

/// A value whose lock is held. When this is dropped a value that was changed is stored, except by a panic.
pub(crate) struct LeaseMonitor<T: Serialize + DeserializeOwned> {
    /// `None` when it has ended, which only what consumes it does.
    pub(super) inside: Option<(LockGuard, T)>,
    pub(super) changed: bool,
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
