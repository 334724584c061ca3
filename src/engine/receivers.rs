//! Who hears of leases that somebody else has ended.

use std::fmt;
use std::sync::Weak;

use crate::base::error::LostReason;
use crate::base::owner::Owner;
use crate::base::sys::sync::Mutex;
use crate::engine::Revocations;

/// The lockers of an engine, each while it lives.
#[derive(Default)]
pub(super) struct Receivers(Mutex<Vec<Weak<dyn Revocations>>>);

impl Receivers {
    pub(super) fn add(&self, receiver: Weak<dyn Revocations>) {
        let mut all = self.0.lock();
        all.retain(|one| one.strong_count() > 0);
        all.push(receiver);
    }

    /// Tells all of them of each owner: none knows which are its own before it looks.
    pub(super) fn tell<'a>(&self, owners: impl IntoIterator<Item = &'a Owner>, reason: LostReason) {
        // Called without the lock: a receiver may be the last that has its locker, whose end is told here.
        let all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        for owner in owners {
            all.iter()
                .for_each(|one| one.revoked(owner.as_str(), u64::MAX, reason));
        }
    }
}

impl fmt::Debug for Receivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().len();
        f.debug_struct("Receivers")
            .field("count", &count)
            .finish_non_exhaustive()
    }
}
