//! Waiters behind many others: they have a long lease, and so cost the servers little.
//!
//! To keep a lease alive costs three members about a millisecond. An owner that came when many were ahead moves its
//! entry to a long lease when its own would have to be kept alive for the first time, and to a new one of a ttl when
//! it goes in: a holder has none that is long. So the entry of one that has died may stand in line for longer than a
//! ttl. When it comes to the front, the waiter behind it passes it over. That one watches also the entry before the
//! one in its way, and so learns that it is at the front.
//!
//! What always holds here: each move has to find the entry as it was written last. So one that comes late, or after
//! the entry was passed over, changes nothing.

use std::time::Duration;

use super::client::{Answer, Compare, Failure, LeaseId, Op, Txn};
use super::keys::Keys;
use super::leases::{Own, ServerLease, Sleeper};
use super::store::{EtcdStore, delete, next_keepalive, put_place};
use crate::base::Deadline;
use crate::engine::{Failed, Request, line::Snapshot};

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
    let is_simple = request.claim.is_exclusive() && !request.claim.is_multi();
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
        answer: &Result<Answer, Failed<Failure>>,
    ) {
        let mut unused = None;
        self.owners.change(request.owner, |own| match answer {
            Ok(answer) if answer.succeeded => {
                // Its keys are called after the lease with which it came.
                let is_free = !own.has_inflight && own.id != own.lease.id.to_string();
                unused = Some(own.lease).filter(|_| is_free);
                settle(own, request.ttl, answer.revision);
            }
            Err(failed) if failed.sent => {}
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
                        "skipped the first waiter for lock {name:?}, which didn't take the lock"
                    );
                }
                self.owners.change(request.owner, |own| own.sleeper = None);
            }
            Err(Failed { error, .. }) => {
                log::debug!("can't skip the first waiter: {error:?}");
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

impl Sleeper {
    fn is_same(&self, other: &Self) -> bool {
        (self.name, &self.id, self.modified) == (other.name, &other.id, other.modified)
    }
}
