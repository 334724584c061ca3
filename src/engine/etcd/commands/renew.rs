//! How a lease is renewed, and how its owner learns that it has lost it.

use super::change::{Found, found, show};
use super::enter::put_entered;
use super::ops::{get, look};
use super::shared::{Commands, ENDING};
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::etcd::client::failure::Failure;
use crate::engine::etcd::client::txn::{Compare, Txn};
use crate::engine::etcd::keys::Keys;
use crate::engine::etcd::owners::Own;
use crate::engine::{Outcome, Request};

impl Commands {
    /// Keeps the owner's lease alive, and then looks whether it has its places: so the servers that had the lease kept alive
    /// are those that have the keys.
    pub(in super::super) fn renew(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let name = request.key().name();
        let Some(own) = self.owners.get(request.owner) else {
            // Its lease has ended long ago.
            return self
                .is_owner(request, deadline)
                .map(|renewed| match renewed {
                    Outcome::BROKEN => Outcome::BROKEN,
                    _ => Outcome::NOT_OWNER,
                });
        };
        let keys = self.keys(request.claim);
        let mut ops = show(&keys, &own, request.owner);
        if own.has_entered {
            ops.extend(keys.iter().map(|keys| get(keys.entered_by(&own.id))));
        }
        let kept = self.prove(request, &own, &look(ops), deadline);
        let mut kept = kept.map_err(|e| self.error(Some(name), e))?;
        let entered = kept.answer.results.split_off(2 * keys.len());
        let standing = standing(&found(kept.answer, request), Some(&own));
        let Some(since) = kept.since.filter(|_| standing.is_done()) else {
            self.lost(request, deadline);
            // Without its lease it loses its keys at any moment.
            return Ok(match standing {
                Outcome::BROKEN => Outcome::BROKEN,
                _ => Outcome::NOT_OWNER,
            });
        };
        let is_forgotten =
            |result: &_| *result == super::super::client::txn::OpResult::Got(Vec::new());
        if entered.iter().any(is_forgotten) {
            self.remember(request, &keys, &own, deadline);
        }
        Ok(Outcome::since(since))
    }

    /// What the next has to be told if this owner doesn't release is told again: it lasts for a day.
    fn remember(&self, request: Request<'_>, keys: &[Keys], own: &Own, deadline: &Deadline) {
        let Ok(memory) = self.leases.memory(deadline) else {
            return;
        };
        let value = |keys: &Keys| Compare::Value(keys.place(&own.id), own.text.clone());
        let txn = Txn {
            compares: keys.iter().map(value).collect(),
            then: keys
                .iter()
                .map(|keys| put_entered(keys, own, memory))
                .collect(),
            otherwise: Vec::new(),
        };
        // The next renewal finds whether it was done.
        let written = self.write(request.owner, &txn, deadline);
        if matches!(written, Err(e) if matches!(e.error, Failure::LeaseGone)) {
            self.leases.lose_memory();
        }
    }

    pub(in super::super) fn is_owner(
        &self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let (own, keys) = (self.known(request.owner), self.keys(request.claim));
        let read = || self.read(show(&keys, &own, request.owner), deadline);
        let answer = read().map_err(|e| self.error(Some(request.key().name()), e))?;
        let standing = standing(&found(answer, request), None);
        if !standing.is_done() {
            self.lost(request, deadline);
        }
        Ok(standing)
    }

    /// The owner has nothing any more but, perhaps, a place that a late copy of its question has put anew: that ends with its
    /// lease. Of several names it may have others, which its release gives up.
    fn lost(&self, request: Request<'_>, deadline: &Deadline) {
        if !request.claim.has_many() {
            self.drop_lease(request.owner, &deadline.within(ENDING));
        }
    }
}

/// How the owner of these stands, whose places have to be under its lease, if that is known.
fn standing(found: &[Found], own: Option<&Own>) -> Outcome {
    let is_own = |one: &Found| {
        let lease = one.own.as_ref().map(|entry| entry.lease);
        lease.is_some_and(|lease| own.is_none_or(|own| lease == Some(own.lease.id)))
    };
    if found.iter().all(is_own) {
        Outcome::DONE
    } else if found.iter().any(|one| one.is_broken) {
        Outcome::BROKEN
    } else {
        Outcome::NOT_OWNER
    }
}
