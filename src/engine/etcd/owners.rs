//! What this process knows of its owners: each has an entry in the line of its names, under a lease.

use std::collections::HashMap;
use std::time::Duration;

use super::client::{LeaseId, Seen, Touched};
use super::leases::ServerLease;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::sys::sync::Mutex;

/// One owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) lease: ServerLease,
    /// It was kept alive later than it was proved to last: what was said of it is to be confirmed.
    pub(super) touched: Option<Touched>,
    /// When its lease is to be kept alive next, while it waits.
    pub(super) keepalive: BootInstant,
    /// The lease that a request without an answer may have moved its entry to.
    pub(super) moving: Option<ServerLease>,
    /// The revision at which its entries were created, if it is known to have some.
    pub(super) created: Option<u64>,
    /// And that at which they were written last.
    pub(super) modified: u64,
    /// Whether many were ahead when it came.
    pub(super) is_far: bool,
    /// The first in line, which was seen not to have taken what is free.
    pub(super) sleeper: Option<Sleeper>,
    /// The last part of its keys: the lease with which it came, or with which the owner came that has passed its lease on to this one.
    pub(super) id: String,
    /// What its entry holds, as far as answers said.
    pub(super) text: Vec<u8>,
    /// Whether a request has no answer that may still give the lease a key, or it may have keys of another owner.
    pub(super) is_unclear: bool,
    /// Whether it may have told that it was let in alone.
    pub(super) has_entered: bool,
    /// Whether it has released the lock as one that is done with it.
    pub(super) is_released: bool,
    /// Whether its entry stays without it.
    pub(super) is_kept: bool,
}

/// The first in line of a name, under a long lease: so it hasn't gone in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sleeper {
    /// Of which name of the request.
    pub(super) name: usize,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) modified: u64,
    /// When it is passed over, if it hasn't gone in by then.
    pub(super) until: BootInstant,
}

impl Own {
    /// Of one of which nothing is known.
    pub(super) fn unknown() -> Self {
        Own {
            lease: ServerLease {
                id: LeaseId(0),
                since: BootInstant::START,
                revision: 0,
            },
            touched: None,
            keepalive: BootInstant::START,
            moving: None,
            created: None,
            modified: 0,
            is_far: false,
            sleeper: None,
            id: String::new(),
            text: Vec::new(),
            is_unclear: true,
            has_entered: false,
            is_released: false,
            is_kept: false,
        }
    }

    /// The member that was asked to keep the lease alive has shown that the leader of that time still leads.
    pub(super) fn confirm(&mut self, by: Seen) {
        let is_confirmed = |touched: &Touched| touched.by == by && touched.lease == self.lease.id;
        if let Some(touched) = self.touched.filter(is_confirmed) {
            self.lease.since = self.lease.since.max(touched.since);
            self.touched = None;
        }
    }

    fn has_lease(&self) -> bool {
        self.lease.id != LeaseId(0)
    }

    /// Whether keys stay behind that are called after the lease with which it came.
    pub(super) fn leaves_keys(&self) -> bool {
        self.is_kept || (self.has_entered && !self.is_released)
    }

    /// Whether there may be keys of its own, now or when a request without an answer is carried out.
    fn may_come_back(&self) -> bool {
        self.is_unclear || self.leaves_keys()
    }

    /// When it was last heard of.
    fn last_heard(&self) -> BootInstant {
        let touched = self
            .touched
            .map_or(BootInstant::START, |touched| touched.since);
        let heard = self.lease.since.max(touched);
        // A long lease needn't be heard of earlier.
        match self.lease.id.is_long() {
            true => heard.max(self.keepalive),
            false => heard,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    owners: HashMap<Owner, Own>,
    purge_at: usize,
}

/// An owner that asks again after so long has tried in vain for longer than any outage that its caller waits for.
const COMES_BACK: Duration = Duration::from_secs(3_600);

impl Owners {
    pub(super) fn get(&self, owner: &Owner) -> Option<Own> {
        self.find(owner).filter(Own::has_lease)
    }

    /// The same, also of one that has no lease any more: then no more than its keys is known.
    pub(super) fn find(&self, owner: &Owner) -> Option<Own> {
        self.0.lock().owners.get(owner).cloned()
    }

    /// Those whose lease was proved long ago are forgotten now and then: their lease has ended, or another process has gone on
    /// with it. One that may come back to its keys is known for longer.
    pub(super) fn set(&self, owner: &Owner, own: Own, now: BootInstant, ttl: Duration) {
        const SMALL: usize = 64;
        let gone_after = 2 * ttl + Duration::from_secs(60);
        let mut table = self.0.lock();
        if table.owners.len() >= table.purge_at.max(SMALL) {
            let is_young = |own: &Own| {
                let unheard = now.since(own.last_heard());
                unheard < gone_after || (own.is_unclear && unheard < COMES_BACK)
            };
            table.owners.retain(|_, own| is_young(own));
            table.purge_at = 2 * table.owners.len();
        }
        table.owners.insert(owner.clone(), own);
    }

    /// Changes what is known of an owner, unless it is forgotten.
    pub(super) fn change(&self, owner: &Owner, change: impl FnOnce(&mut Own)) {
        if let Some(own) = self.0.lock().owners.get_mut(owner) {
            change(own);
        }
    }

    /// Its lease is no longer its own. If it asks again, it comes back to the keys that it may have left.
    pub(super) fn remove(&self, owner: &Owner) -> Option<Own> {
        let mut table = self.0.lock();
        let own = table.owners.get(owner).filter(|own| own.has_lease())?;
        let own = own.clone();
        table.owners.remove(owner);
        if own.may_come_back() {
            let unknown = Own::unknown();
            let lease = ServerLease {
                since: own.lease.since,
                ..unknown.lease
            };
            let left = Own {
                id: own.id.clone(),
                lease,
                ..unknown
            };
            table.owners.insert(owner.clone(), left);
        }
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(since: u64) -> Own {
        Own {
            lease: ServerLease {
                id: LeaseId(7),
                since: BootInstant::START.plus(Duration::from_secs(since)),
                revision: 0,
            },
            is_unclear: false,
            ..Own::unknown()
        }
    }

    #[test]
    fn owner_that_may_have_left_keys_comes_back_to_them() {
        let id = |owners: &Owners, owner: &Owner| owners.find(owner).map(|own| own.id);
        for (is_unclear, has_entered) in [(false, false), (true, false), (false, true)] {
            let (owners, owner) = (Owners::default(), Owner::new());
            let own = Own {
                id: "7".into(),
                is_unclear,
                has_entered,
                ..own(1)
            };
            owners.set(&owner, own, BootInstant::START, Duration::from_secs(10));
            let comes_back = is_unclear || has_entered;
            // Also if it is given up twice.
            for is_first in [true, false] {
                assert_eq!(owners.remove(&owner).is_some(), is_first);
                assert!(owners.get(&owner).is_none());
                let left = comes_back.then(|| "7".to_owned());
                assert_eq!(id(&owners, &owner), left, "{is_unclear} {has_entered}");
            }
        }
    }

    #[test]
    fn owners_of_long_ago_are_forgotten_as_others_come() {
        let owners = Owners::default();
        for now in 0..10_000 {
            let at = BootInstant::START.plus(Duration::from_secs(now));
            owners.set(&Owner::new(), own(now), at, Duration::from_secs(10));
            assert!(owners.0.lock().owners.len() <= 200);
        }
    }
}
