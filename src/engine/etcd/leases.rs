//! The leases that this process has at etcd, and what it knows of the owners that have them.
//!
//! An owner has a lease of its own while it stands in line. Afterwards another may use it, as long as most of its
//! time is left: so a program that locks in a loop is granted a lease now and then only. One more lease, of a day, is
//! for what the next holder has to be told if an owner is gone.
//!
//! An owner's keys are called after its lease, so a program that locks a name in a loop writes the same keys again
//! and again. etcd keeps each deleted key in memory until its history is compacted, and walks over all of a line's
//! whenever it looks at that line.
//!
//! What always holds: a lease that is given again has no key, no key is called after it, and no request is underway
//! that could still make one. Its time counts from before the request that has proved it. Where the servers' data was
//! set back, as by a snapshot, its keys of then are back: that shows in revisions when it is given one more key, and
//! it is ended.

use std::{sync::Arc, time::Duration};

use super::client::{Client, Failure, LeaseId, MemberTerm, Touched};
use crate::base::sys::collections::HashMap;
use crate::base::{BootInstant, Clock, Deadline, Owner, sys::sync::Mutex};

/// A lease at etcd, as this process knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerLease {
    pub(super) id: LeaseId,
    /// It lasts from then on for its whole time, at least.
    pub(super) since: BootInstant,
    /// The servers' revision when they told last what was done with it.
    pub(super) revision: u64,
}

/// How many ttls a long lease lasts: see `far`.
const LONG: u32 = 16;

impl ServerLease {
    /// How long it lasts, for an owner with that ttl.
    pub(super) fn time(&self, ttl: Duration) -> Duration {
        if self.id.is_long() { ttl * LONG } else { ttl }
    }
}

/// How long what has to be told outlives its owner: `ABANDONMENT` at most, and half of it at least.
const MEMORY: Duration = crate::base::limits::ABANDONMENT;

/// More spare leases than these are left to their ttl.
const MOST_SPARE: usize = 64;

#[derive(Debug)]
pub(super) struct Leases {
    client: Arc<Client>,
    clock: Arc<dyn Clock>,
    /// The one that was proved last is the last.
    spare: Mutex<Vec<ServerLease>>,
    memory: Mutex<Memory>,
}

/// What has to be told of owners that are gone.
#[derive(Debug, Default)]
struct Memory {
    /// The lease that was asked for last, and when at first: it may be there without an answer.
    lease: Option<(LeaseId, BootInstant)>,
    is_granted: bool,
    /// How many keys there are, perhaps, also of those before it.
    keys: usize,
}

impl Leases {
    pub(super) fn new(client: Arc<Client>, clock: Arc<dyn Clock>) -> Self {
        Leases {
            client,
            clock,
            spare: Mutex::default(),
            memory: Mutex::default(),
        }
    }

    /// A lease that nobody uses, with most of its time left: perhaps a long one.
    pub(super) fn take(
        &self,
        ttl: Duration,
        is_long: bool,
        deadline: &Deadline,
    ) -> Result<ServerLease, Failure> {
        if let Some(lease) = self.spare(ttl, is_long) {
            return Ok(lease);
        }
        let (lease, time) = match is_long {
            true => (LeaseId::new_long(), ttl * LONG),
            false => (LeaseId::new(), ttl),
        };
        let granted = self.grant_as((lease, false), time, deadline);
        granted.map(|(lease, _)| lease)
    }

    fn spare(&self, ttl: Duration, is_long: bool) -> Option<ServerLease> {
        let mut spare = self.spare.lock();
        let is_such = |lease: &ServerLease| lease.id.is_long() == is_long;
        let lease = spare.iter().rposition(is_such).map(|at| spare.remove(at));
        lease.filter(|lease| self.is_fresh(lease, ttl))
    }

    /// A new one, and for how many seconds it is.
    pub(super) fn grant(
        &self,
        ttl: Duration,
        deadline: &Deadline,
    ) -> Result<(ServerLease, u64), Failure> {
        self.grant_as((LeaseId::new(), false), ttl, deadline)
    }

    fn grant_as(
        &self,
        lease: (LeaseId, bool),
        ttl: Duration,
        deadline: &Deadline,
    ) -> Result<(ServerLease, u64), Failure> {
        // Read before sending: the servers' lease starts no earlier than this.
        let since = self.clock.now();
        let seconds = whole_seconds(ttl);
        let seconds = self.client.grant_lease(lease, seconds, deadline)?;
        let lease = ServerLease {
            id: lease.0,
            since,
            revision: 0,
        };
        Ok((lease, seconds))
    }

    pub(super) fn is_fresh(&self, lease: &ServerLease, ttl: Duration) -> bool {
        self.clock.now().since(lease.since) < lease.time(ttl) / 3
    }

    /// Takes back a lease that has no key, and none on its way.
    pub(super) fn give_back(&self, lease: ServerLease) {
        let mut spare = self.spare.lock();
        if spare.len() == MOST_SPARE {
            spare.remove(0);
        }
        let place = spare.partition_point(|other| other.since <= lease.since);
        spare.insert(place, lease);
    }

    /// Ends a lease, which may be of another process, and all that it has; what it may still get is refused. Where
    /// that fails, it ends with its ttl.
    pub(super) fn revoke(&self, lease: LeaseId, deadline: &Deadline) {
        if let Err(e) = self.client.revoke(lease, deadline) {
            log::debug!("can't revoke a lease at etcd, which ends after its ttl: {e:?}");
        }
    }

    /// The lease of the holder markers. Threads that ask at the same time ask for the same lease.
    pub(super) fn memory(&self, deadline: &Deadline) -> Result<LeaseId, Failure> {
        let (id, is_granted) = self.to_remember();
        if !is_granted {
            self.grant_as((id, true), MEMORY, deadline)?;
            let mut memory = self.memory.lock();
            memory.is_granted |= memory.lease.is_some_and(|(asked, _)| asked == id);
        }
        Ok(id)
    }

    /// The lease, and whether it is there.
    fn to_remember(&self) -> (LeaseId, bool) {
        let (mut memory, now) = (self.memory.lock(), self.clock.now());
        let is_young = |since: BootInstant| now.since(since) < MEMORY / 2;
        if let Some((id, _)) = memory.lease.filter(|(_, since)| is_young(*since)) {
            return (id, memory.is_granted);
        }
        let id = LeaseId::new();
        (memory.lease, memory.is_granted) = (Some((id, now)), false);
        (id, false)
    }

    /// It isn't there any more.
    pub(super) fn lose_memory(&self) {
        let mut memory = self.memory.lock();
        // Otherwise another is asked for already.
        if std::mem::take(&mut memory.is_granted) {
            memory.lease = None;
        }
    }

    /// Another key may be under it.
    pub(super) fn remembers(&self) {
        self.memory.lock().keys += 1;
    }

    /// A key that was counted is known to be gone.
    pub(super) fn forgets(&self) {
        let mut memory = self.memory.lock();
        memory.keys = memory.keys.saturating_sub(1);
    }

    /// Ends what nobody needs any more, when the last user of the engine has gone; spare leases as far as there is
    /// time.
    pub(super) fn close(&self, deadline: &Deadline) {
        let memory = std::mem::take(&mut *self.memory.lock());
        let unused = memory
            .lease
            .filter(|_| memory.keys == 0 || !memory.is_granted);
        let spare = std::mem::take(&mut *self.spare.lock());
        let spare = spare.into_iter().map(|lease| lease.id);
        for lease in unused.map(|(id, _)| id).into_iter().chain(spare) {
            if deadline.is_over() {
                return;
            }
            self.revoke(lease, deadline);
        }
    }
}

/// A lease lasts for whole seconds.
pub(super) fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

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
    /// The last part of its keys: the lease with which it came, or with which the owner came that has passed its
    /// lease on to this one.
    pub(super) id: String,
    /// What its entry holds, as far as answers said.
    pub(super) text: Vec<u8>,
    /// Whether a request has no answer that may still give the lease a key, or it may have keys of another owner.
    pub(super) has_inflight: bool,
    /// Whether it may have told that it was let in alone.
    pub(super) has_marker: bool,
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
            has_inflight: true,
            has_marker: false,
            is_released: false,
            is_kept: false,
        }
    }

    /// The member that was asked to keep the lease alive has shown that the leader of that time still leads.
    pub(super) fn confirm(&mut self, by: MemberTerm) {
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
        self.is_kept || (self.has_marker && !self.is_released)
    }

    /// Whether there may be keys of its own, now or when a request without an answer is carried out.
    fn may_come_back(&self) -> bool {
        self.has_inflight || self.leaves_keys()
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

/// The owners of this process: each has an entry in the line of its names, under a lease.
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

    /// Those whose lease was proved long ago are forgotten now and then: their lease has ended, or another process
    /// has gone on with it. One that may come back to its keys is known for longer.
    pub(super) fn set(&self, owner: &Owner, own: Own, now: BootInstant, ttl: Duration) {
        const SMALL: usize = 64;
        let gone_after = 2 * ttl + Duration::from_secs(60);
        let mut table = self.0.lock();
        if table.owners.len() >= table.purge_at.max(SMALL) {
            let is_young = |own: &Own| {
                let unheard = now.since(own.last_heard());
                unheard < gone_after || (own.has_inflight && unheard < COMES_BACK)
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
mod tests;
