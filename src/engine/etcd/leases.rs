//! The leases that this process has at etcd, and gives its owners.
//!
//! An owner has a lease of its own while it stands in line. Afterwards another may use it, as long as most of its time is
//! left: so a program that locks in a loop is granted a lease now and then only. One more lease, of a day, is for what the
//! next holder has to be told if an owner is gone.
//!
//! An owner's keys are called after its lease, so a program that locks a name in a loop writes the same keys again and again. etcd keeps
//! each deleted key in memory until its history is compacted, and walks over all of a line's whenever it looks at that line.
//!
//! What always holds: a lease that is given again has no key, no key is called after it, and no request is underway that could still make one.
//! Its time counts from before the request that has proved it. Where the servers' data was set back, as by a snapshot, its keys of then are back: that
//! shows in revisions when it is given one more key, and it is ended.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, Failure, LeaseId};
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::sys::sync::Mutex;

/// A lease at etcd, as this process knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerLease {
    pub(super) id: LeaseId,
    /// It lasts from then on for its whole time, at least.
    pub(super) since: BootInstant,
    /// The servers' revision when they told last what was done with it.
    pub(super) revision: u64,
}

/// A long lease lasts for so many ttls. One that waits behind many has it: to keep all of them alive for a ttl each would cost
/// the servers more than the locks.
const LONG: u32 = 16;

impl ServerLease {
    /// How long it lasts, for an owner with that ttl.
    pub(super) fn time(&self, ttl: Duration) -> Duration {
        match self.id.is_long() {
            true => ttl * LONG,
            false => ttl,
        }
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

    /// Ends a lease, which may be of another process, and all that it has; what it may still get is refused. Where that fails, it
    /// ends with its ttl.
    pub(super) fn revoke(&self, lease: LeaseId, deadline: &Deadline) {
        if let Err(e) = self.client.revoke(lease, deadline) {
            log::debug!("a lease at etcd is left to its ttl: {e:?}");
        }
    }

    /// That of what has to be told of owners that are gone. Threads that ask at once ask for the same.
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

    /// It has a key more, perhaps.
    pub(super) fn remembers(&self) {
        self.memory.lock().keys += 1;
    }

    /// A key that was counted is known to be gone.
    pub(super) fn forgets(&self) {
        let mut memory = self.memory.lock();
        memory.keys = memory.keys.saturating_sub(1);
    }

    /// Ends what nobody needs any more, when the last user of the engine has gone; spare leases as far as there is time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_second_are_rounded_up() {
        for (millis, seconds) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (2_000, 2)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
