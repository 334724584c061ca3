//! A lease on its way from one process to another.

use std::fmt;
use std::time::Duration;

use crate::base::claim::Claim;
use crate::base::owner::Owner;

/// Carries a lease from one process to another: made by [`LockGuard::into_owner`](crate::LockGuard::into_owner), used by
/// [`Locker::adopt`](crate::Locker::adopt).
///
/// Whoever knows what it says can adopt or release the lock, so it is a secret, and its `Debug` shows the lock's name only.
/// With the feature `value` it is `serde::Serialize` and `serde::Deserialize`: a string.
pub struct OwnerTicket {
    pub(crate) claim: Claim,
    pub(crate) owner: Owner,
    /// The last fencing token that was used under this lease.
    pub(crate) last_used: u64,
    /// How long the lease lasts from when it was made or renewed last.
    pub(crate) ttl: Duration,
}

impl fmt::Debug for OwnerTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerTicket")
            .field("name", &self.claim.key.name())
            .finish_non_exhaustive()
    }
}
