//! How an owner's lease is proven to last, and what follows one that can't be proven any more.
//!
//! A lease lasts by what was done in the term in which it was granted: see [`ServerLease::lasts_by`]. When another leads, the
//! next proof gives the owner a new lease, and puts its places under that one, as they are: their order and their tokens stay.
//! What counts is the new lease once it is proven itself; until then the time of the old one goes on.
//!
//! | what may come late | why it does no harm |
//! |---|---|
//! | the transaction that puts places under the new lease | the places were changed, or deleted, since they were looked at |
//! | a question from before the owner had the lock, which would put them under the old one | the old lease is ended, and the places are looked at again, before the new one follows |

use super::change::{found, show};
use super::shared::Commands;
use crate::base::clock::Deadline;
use crate::engine::Request;
use crate::engine::etcd::client::KeptAlive;
use crate::engine::etcd::client::failure::Failure;
use crate::engine::etcd::client::txn::{Compare, Entry, LeaseId, Op, Txn};
use crate::engine::etcd::leases::ServerLease;
use crate::engine::etcd::owners::Own;

impl Commands {
    /// Keeps the owner's lease alive, or that which follows it, and then carries out `look`, which only reads. Without an answer
    /// it is repeated as it is.
    pub(super) fn prove(
        &self,
        request: Request<'_>,
        own: &Own,
        look: &Txn,
        deadline: &Deadline,
    ) -> Result<(Own, KeptAlive), Failure> {
        let mut own = own.clone();
        loop {
            let mut kept = self.client.keep_alive(own.lease.id, look, deadline)?;
            if kept.since.is_some() && own.lease.lasts_by(kept.term) && own.next.is_none() {
                self.proved(request, &own, kept.since);
                return Ok((own, kept));
            }
            let Some(known) = self.owners.get(request.owner) else {
                kept.since = None;
                return Ok((own, kept));
            };
            let is_known = known.lease.id == own.lease.id;
            own = known;
            if !is_known {
                // Another thread has replaced it.
                continue;
            }
            if kept.since.is_none() && own.next.is_none() {
                return Ok((own, kept));
            }
            match self.replace(request, &own, deadline)? {
                Replaced::By(new) => own = *new,
                Replaced::ByAnother => {}
                Replaced::Displaced => {
                    let answer = self.client.transact(look, deadline);
                    kept.answer = answer.map_err(|unanswered| unanswered.error)?;
                    kept.since = None;
                    return Ok((own, kept));
                }
            }
        }
    }

    /// Puts the owner's places under another lease.
    fn replace(
        &self,
        request: Request<'_>,
        own: &Own,
        deadline: &Deadline,
    ) -> Result<Replaced, Failure> {
        let keys = self.keys(request.claim);
        let mut may_be_asked_for = own.is_unclear;
        loop {
            let Some(next) = self.next_of(request, own, deadline)? else {
                return Ok(Replaced::ByAnother);
            };
            let seen = self.read(show(&keys, own, request.owner), deadline)?;
            let places = found(seen, request).into_iter();
            let Some(places) = places.map(|one| one.own).collect::<Option<Vec<_>>>() else {
                return Ok(Replaced::Displaced);
            };
            let is_under = |place: &Entry, lease: ServerLease| place.lease == Some(lease.id);
            if places.iter().any(|one| is_under(one, own.lease)) {
                // What came of it is looked at.
                match self.client.transact(&moved(&places, next.id), deadline) {
                    Err(e) if matches!(e.error, Failure::LeaseGone) => {
                        self.set_next(request, own, |known| _ = known.take());
                    }
                    moved => _ = moved.map_err(|unanswered| unanswered.error)?,
                }
            } else if !places.iter().all(|one| is_under(one, next)) {
                let known = self.next_of(request, own, deadline)?;
                if known.is_some_and(|known| known.id == next.id) {
                    return Ok(Replaced::Displaced);
                }
            } else if may_be_asked_for {
                self.client.revoke(own.lease.id, deadline)?;
                may_be_asked_for = false;
            } else {
                return Ok(self.follow(request, own, next, deadline));
            }
        }
    }

    /// The lease to follow that of the owner; `None` if the owner has that lease no more.
    fn next_of(
        &self,
        request: Request<'_>,
        own: &Own,
        deadline: &Deadline,
    ) -> Result<Option<ServerLease>, Failure> {
        let mut next = None;
        if !self.set_next(request, own, |known| next = *known) || next.is_some() {
            return Ok(next);
        }
        let (granted, _) = self.leases.grant(request.ttl, deadline)?;
        self.set_next(request, own, |known| {
            next = Some(*known.get_or_insert(granted));
        });
        if next.is_none_or(|next| next.id != granted.id) {
            self.leases.revoke(granted, deadline);
        }
        Ok(next)
    }

    /// Changes what is to follow the lease of an owner, if it still has that one.
    fn set_next(
        &self,
        request: Request<'_>,
        own: &Own,
        set: impl FnOnce(&mut Option<ServerLease>),
    ) -> bool {
        let mut is_set = false;
        self.owners.change(request.owner, |known| {
            is_set = known.lease.id == own.lease.id;
            if is_set {
                set(&mut known.next);
            }
        });
        is_set
    }

    /// All places are under the next lease: it is the owner's from now on.
    fn follow(
        &self,
        request: Request<'_>,
        own: &Own,
        next: ServerLease,
        deadline: &Deadline,
    ) -> Replaced {
        let mut new = None;
        self.owners.change(request.owner, |known| {
            if known.lease.id == own.lease.id {
                let revision = known.lease.revision;
                (known.lease, known.next) = (ServerLease { revision, ..next }, None);
                // What has no answer is about the old lease.
                known.is_unclear &= !own.is_unclear;
                new = Some(known.clone());
            }
        });
        let Some(new) = new else {
            return Replaced::ByAnother;
        };
        log::debug!("another member of etcd leads, so an owner has another lease");
        if !own.is_unclear {
            self.leases.revoke(own.lease, deadline);
        }
        Replaced::By(Box::new(new))
    }
}

/// What came of it.
enum Replaced {
    By(Box<Own>),
    /// Another thread did so meanwhile, or has released the lock.
    ByAnother,
    /// Not all places are there any more, and as the owner has put them.
    Displaced,
}

/// Puts places under that lease, if they are as they were seen.
fn moved(places: &[Entry], lease: LeaseId) -> Txn {
    let as_seen = |place: &Entry| Compare::ModifiedAt(place.key.clone(), place.modified);
    let put = |place: &Entry| Op::Put {
        key: place.key.clone(),
        value: place.value.clone(),
        lease: Some(lease),
    };
    Txn {
        compares: places.iter().map(as_seen).collect(),
        then: places.iter().map(put).collect(),
        otherwise: Vec::new(),
    }
}
