//! etcd as a store of lines: which transaction each step takes.
//!
//! # Waiters behind many others
//!
//! They have a long lease, and so cost the servers little.
//!
//! To keep a lease alive costs three members about a millisecond. An owner that came when many were ahead moves its
//! entry to a long lease when its own would have to be kept alive for the first time, and to a new one of a ttl when
//! it goes in: a holder has none that is long. So the entry of one that has died may stand in line for longer than a
//! ttl. When it comes to the front, the waiter behind it passes it over. That one watches also the entry before the
//! one in its way, and so learns that it is at the front.
//!
//! What always holds here: each move has to find the entry as it was written last. So one that comes late, or after
//! the entry was passed over, changes nothing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::client::{Answer, Compare, Failure, LeaseId, Op, Txn};
use super::keys::Keys;
use super::leases::{Own, ServerLease};
use super::look::EtcdWatch;
use super::{EtcdStore, delete, next_keepalive, put_place, reading};
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::Result;
use crate::engine::line::{Blocker, HAND_OVERS, LineStore, Snapshot, Step, Watched, When, Why};
use crate::engine::{Capabilities, Request, Revocations, Unanswered};

/// etcd takes 128 operations in a transaction, and each name needs three.
const MOST_NAMES: usize = 40;

impl LineStore for EtcdStore {
    type Watch = EtcdWatch;

    fn place(&self) -> &str {
        self.client.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            most_names: MOST_NAMES,
            preference: false,
            hand_overs: HAND_OVERS,
            ..Capabilities::default()
        }
    }

    fn gives_up_by(&self, deadline: &Deadline) -> Deadline {
        deadline.within(self.client.patience())
    }

    fn enter(
        &self,
        request: Request<'_>,
        when: When,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered> {
        match self.enter_line(request, when, deadline) {
            // Its lease is gone, or that of what is to be told of it.
            Err(unanswered) if matches!(unanswered.error, Failure::LeaseGone) => {
                self.leases.lose_memory();
                self.drop_lease(request.owner, deadline);
                Ok(Step::Lost)
            }
            step => step.map_err(|e| self.unanswered(request.key().name(), e)),
        }
    }

    fn look(
        &self,
        request: Request<'_>,
        why: Why,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered> {
        let (mut own, now) = (self.known(request.owner), self.clock.now());
        if let Some(sleeper) = own.sleeper.take_if(|one| one.until <= now) {
            self.pass_over(request, &sleeper, deadline);
        }
        let is_due = own.keepalive <= now && why != Why::Unclear;
        let step = match why {
            Why::Quiet if is_due && may_stretch(request, &own) => {
                self.stretch(request, &own, deadline)
            }
            // Its entry may be under another lease by now, which has to be kept alive then.
            Why::Quiet if is_due && own.moving.is_some() => self.keepalive(request, &own, deadline),
            Why::Quiet if is_due => self.touch(request, &own, deadline),
            _ if is_due && own.touched.is_none() => self.keepalive(request, &own, deadline),
            // Going in is a commit also where somebody is still ahead.
            Why::Quiet | Why::News if request.claim.is_exclusive() => {
                return self.admit_alone(request, deadline);
            }
            Why::Unclear => self.see(
                request,
                &Own {
                    created: None,
                    ..own
                },
                deadline,
            ),
            _ => self.see(request, &own, deadline),
        };
        step.map_err(|e| self.unanswered(request.key().name(), e))
    }

    fn admit(
        &self,
        request: Request<'_>,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered> {
        if request.claim.is_exclusive() {
            return self.admit_alone(request, deadline);
        }
        let grant = (seen.is_abandoned, seen.value.clone());
        let step = self.granted(request, grant, deadline);
        step.map_err(|e| self.unanswered(request.key().name(), e))
    }

    fn rest(&self, request: Request<'_>) -> Duration {
        let own = self.known(request.owner);
        let looks = own.sleeper.map_or(own.keepalive, |one| one.until);
        looks.min(own.keepalive).since(self.clock.now())
    }

    fn watch(
        &self,
        request: Request<'_>,
        blocker: &Blocker,
        seen: &Snapshot,
        deadline: &Deadline,
    ) -> Result<Watched<EtcdWatch>> {
        EtcdWatch::begin(self, request, (blocker, seen), deadline)
    }

    fn leave(&self, request: Request<'_>, deadline: &Deadline) -> Result<(), Unanswered> {
        let own = self.known(request.owner);
        // It has done nothing that the next would have to be told.
        let of_name = |keys: &Keys| [keys.place(&own.id), keys.marker_of(&own.id)].map(delete);
        let ops = self.keys(request.claim).iter().flat_map(of_name).collect();
        let written = self.write(request.owner, &reading(ops), deadline);
        written.map_err(|e| self.unanswered(request.key().name(), e))?;
        if own.has_marker {
            self.leases.forgets();
            self.owners
                .change(request.owner, |own| own.has_marker = false);
        }
        Ok(())
    }

    fn has_inflight(&self, request: Request<'_>) -> bool {
        let own = self.owners.get(request.owner);
        own.is_some_and(|own| own.has_inflight)
    }

    fn retire(&self, request: Request<'_>, deadline: &Deadline) {
        let Some(own) = self.owners.remove(request.owner) else {
            return;
        };
        if !own.has_inflight {
            if !own.leaves_keys() {
                self.leases.give_back(own.lease);
            }
            return;
        }
        // A question of its own that comes late is refused from now on, but one that came just now may have left word
        // that it was let in.
        self.revoke_all(&own, deadline);
        if own.is_released && own.has_marker {
            let keys = self.keys(request.claim).into_iter();
            let left = keys.map(|keys| delete(keys.marker_of(&own.id))).collect();
            // It was released, whatever comes of this.
            let _ = self.client.transact(&reading(left), deadline);
        }
    }

    fn abandon(&self, request: Request<'_>, deadline: &Deadline) {
        self.drop_lease(request.owner, deadline);
    }

    fn settle(&self, request: Request<'_>, deadline: &Deadline) {
        if let Some(own) = self.owners.get(request.owner) {
            self.leases.revoke(own.lease.id, deadline);
        }
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.receivers.add(to);
    }

    fn after_fork(&self) -> Arc<Self> {
        let client = Arc::new(self.client.after_fork());
        Arc::new(EtcdStore::new(client, self.clock.clone()))
    }
}

impl EtcdStore {
    fn enter_line(
        &self,
        request: Request<'_>,
        when: When,
        deadline: &Deadline,
    ) -> Result<Step, Unanswered<Failure>> {
        // One that has nothing takes another lease if its own isn't new any more.
        if let Some(own) = self.owners.get(request.owner)
            && (own.lease.id.is_long() || !self.leases.is_fresh(&own.lease, request.ttl))
        {
            self.drop_lease(request.owner, deadline);
        }
        let own = self.own_of(request, deadline).map_err(Unanswered::unsent)?;
        if request.claim.is_exclusive() {
            self.enter_alone(request, &own, when == When::Always, deadline)
        } else {
            self.enter_among(request, &own, when, deadline)
        }
    }

    /// Acquires alone. If the lease of the holder markers is gone, the marker gets another lease.
    fn admit_alone(&self, request: Request<'_>, deadline: &Deadline) -> Result<Step, Unanswered> {
        loop {
            let own = self.known(request.owner);
            match self.acquire(request, &own, deadline) {
                Err(e) if matches!(e.error, Failure::LeaseGone) && !deadline.is_over() => {
                    self.leases.lose_memory();
                }
                step => return step.map_err(|e| self.unanswered(request.key().name(), e)),
            }
        }
    }
}

/// With more than this many ahead, a waiter gets a long lease.
const MANY: u64 = 16;

/// The first in line has this time to go in until it is looked at, and from then on. One that is seen to be first at
/// once, by a waiter that has just come, has it once.
pub(super) fn time_to_acquire(ttl: Duration) -> Duration {
    ttl / 2
}

/// Whether an owner that saw this many keys in line has come behind many.
pub(super) fn is_far(keys: u64) -> bool {
    MANY < keys
}

/// Whether the owner's entry is to have a long lease. A question of the owner without an answer may put it in line
/// anew under the lease that it has now, which has to be revoked then.
pub(super) fn may_stretch(request: Request<'_>, own: &Own) -> bool {
    let is_simple = request.claim.is_exclusive() && !request.claim.has_many();
    let is_clear = own.created.is_some() && !own.has_inflight;
    own.is_far && is_simple && is_clear && !own.lease.id.is_long()
}

/// Whether the owner has to move its entry to a lease of a ttl when it goes in: from a long one, or one that it may
/// have been moved to.
pub(super) fn has_to_move(own: &Own) -> bool {
    own.lease.id.is_long() || own.moving.is_some()
}

impl EtcdStore {
    /// From now on its entry may be under that lease.
    pub(super) fn moves_to(&self, request: Request<'_>, lease: ServerLease) {
        self.owners
            .change(request.owner, |own| own.moving = Some(lease));
    }

    /// What came of a question that was to move its entry. If nothing did, an earlier one without an answer may still
    /// move it.
    pub(super) fn went_over(
        &self,
        request: Request<'_>,
        before: &Own,
        answer: &Result<Answer, Unanswered<Failure>>,
    ) {
        let mut unused = None;
        self.owners.change(request.owner, |own| match answer {
            Ok(answer) if answer.succeeded => {
                // Its keys are called after the lease with which it came.
                let is_free = !own.has_inflight && own.id != own.lease.id.to_string();
                unused = Some(own.lease).filter(|_| is_free);
                settle(own, request.ttl, answer.revision);
            }
            Err(unanswered) if unanswered.sent => {}
            Ok(_) | Err(_) => unused = std::mem::replace(&mut own.moving, before.moving),
        });
        let unused = unused.into_iter();
        unused.for_each(|lease| self.leases.give_back(lease));
    }

    /// Finds in what was seen whether the first in line is one that hasn't gone in, and is all that is in the owner's
    /// way.
    pub(super) fn note_sleeper(&self, request: Request<'_>, seen: &Snapshot) {
        let found = seen.blocker(request).and_then(|blocker| {
            let first = seen.lines[blocker.name].0.first()?;
            // Numbers of leases that other programs have say nothing.
            let is_ours = first.owner().is_some();
            let is_long = is_ours && first.session.is_some_and(|id| LeaseId(id).is_long());
            let is_it = blocker.is_one && blocker.ahead[0] == first.id;
            (seen.is_whole && is_long && is_it).then(|| Sleeper {
                name: blocker.name,
                id: first.id.clone(),
                created: first.place,
                modified: first.version,
                until: self.clock.now().plus(time_to_acquire(request.ttl)),
            })
        });
        self.owners.change(request.owner, |own| {
            let is_known = |one: &Sleeper| found.as_ref().is_some_and(|new| new.is_same(one));
            if !own.sleeper.as_ref().is_some_and(is_known) {
                own.sleeper = found;
            }
        });
    }

    /// Takes the first out of the line, if it still is that, and hasn't gone in. If it lives it comes into line anew.
    pub(super) fn pass_over(&self, request: Request<'_>, first: &Sleeper, deadline: &Deadline) {
        let keys = &self.keys(request.claim)[first.name];
        let place = keys.place(&first.id);
        let txn = Txn {
            compares: vec![
                Compare::ModifiedAt(place.clone(), first.modified),
                Compare::NoneCreatedBefore(keys.line(), first.created),
            ],
            then: vec![delete(place)],
            otherwise: Vec::new(),
        };
        match self.client.transact(&txn, deadline) {
            Ok(answer) => {
                if answer.succeeded {
                    let name = request.claim.keys()[first.name].name();
                    log::info!(
                        "the first that waits for {name} hasn't taken it, and is passed over"
                    );
                }
                self.owners.change(request.owner, |own| own.sleeper = None);
            }
            Err(Unanswered { error, .. }) => {
                log::debug!("the first in line isn't passed over: {error:?}");
                let again = self.clock.now().plus(time_to_acquire(request.ttl));
                self.owners.change(request.owner, |own| {
                    own.sleeper = Some(Sleeper {
                        until: again,
                        ..first.clone()
                    });
                });
            }
        }
    }
}

/// The owner's entry is under the lease that it was to be moved to, since that revision.
pub(super) fn settle(own: &mut Own, ttl: Duration, revision: u64) {
    let Some(lease) = own.moving.take() else {
        return;
    };
    own.lease = ServerLease { revision, ..lease };
    own.modified = revision;
    own.keepalive = next_keepalive(lease.since, lease.time(ttl));
    own.touched = None;
}

/// The entry is there, and is as it was written last.
pub(super) fn as_written(keys: &Keys, own: &Own) -> Compare {
    Compare::ModifiedAt(keys.place(&own.id), own.modified)
}

/// Puts the entries under another lease.
pub(super) fn put_under(keys: &[Keys], own: &Own, lease: LeaseId) -> Vec<Op> {
    let place = |keys: &Keys| put_place(keys, own, lease);
    keys.iter().map(place).collect()
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

impl Sleeper {
    fn is_same(&self, other: &Self) -> bool {
        (self.name, &self.id, self.modified) == (other.name, &other.id, other.modified)
    }
}
