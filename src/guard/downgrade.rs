//! How a guard that excludes all becomes one that reads.

use std::sync::Arc;

use super::LockGuard;
use crate::base::claim::Claim;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::limits::RELEASE;
use crate::base::token::Ending;
use crate::lease::Lease;
use crate::lease::deferred_release::DeferredRelease;

impl LockGuard {
    /// Goes on reading, and stores the value if the lock is still this guard's.
    pub(crate) fn read_on(&mut self, value: Option<Arc<[u8]>>) -> Result<LockGuard> {
        let core = self.core.clone();
        let sharing = core.engine.sharing()?;
        if !self.claim.is_exclusive() || self.claim.has_many() {
            let what = "to downgrade what isn't one exclusive lock".to_owned();
            return Err(Error::Unsupported { what });
        }
        self.check()?;
        let Some((mut lease, turn)) = self.monitor.end() else {
            return Err(self.lost_error());
        };
        let (last_used, deadline) = (lease.token.number, Deadline::after(RELEASE));
        // Read before sending: the server's lease starts no earlier than this.
        let asked = core.clock.now();
        let request = self.request(&lease);
        let downgraded = sharing.downgrade(request, last_used, value.as_deref(), &deadline);
        let reading = self.claim.shared();
        match downgraded {
            Ok(Some(token)) => {
                (lease.claim, lease.token) = (reading, token);
                lease.value = value.map(Some).or(lease.value);
                core.restart(&mut lease, asked);
                // The others of this process ask for themselves.
                drop(turn);
                Ok(LockGuard::new(core, lease, self.renewer.take(), None))
            }
            Ok(None) => {
                self.return_renewer();
                Err(self.lost_error())
            }
            Err(e) => {
                self.return_renewer();
                self.defer_both(lease, reading);
                Err(e)
            }
        }
    }

    /// It isn't known whether the lease excludes all still, or reads: it is released as both.
    fn defer_both(&self, lease: Lease, reading: Claim) {
        let ttl = self.core.options.ttl;
        let as_reader = DeferredRelease {
            claim: reading,
            owner: lease.owner.clone(),
            ttl,
            ending: Ending::Clean {
                last_used: lease.token.number,
            },
            kept_until: lease.kept_until,
        };
        self.defer(DeferredRelease::of(lease, ttl));
        self.defer(as_reader);
    }
}
