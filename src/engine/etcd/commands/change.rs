//! What an owner does with a lock that it has: only if its places are as it has written them.

use super::ops::{get, got};
use super::shared::Commands;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::Result;
use crate::base::owner::Owner;
use crate::engine::Request;
use crate::engine::etcd::client::txn::{Answer, Compare, Entry, LeaseId, Op, Txn};
use crate::engine::etcd::keys::{Keys, id_of};
use crate::engine::etcd::leases::ServerLease;
use crate::engine::etcd::owners::Own;
use crate::engine::etcd::place::Text;
use crate::engine::line::revision_of;

/// What came of it.
pub(super) enum Changed {
    Done,
    /// Nothing was done; of each name what is there.
    Other(Vec<Found>),
}

/// What is there in place of what an owner has written.
#[derive(Debug)]
pub(super) struct Found {
    /// What is there, if it is this owner's all the same.
    pub(super) own: Option<Entry>,
    /// Whether the owner was broken.
    pub(super) is_broken: bool,
}

impl Commands {
    /// What is known of an owner; of one that was forgotten, or comes from another process, no more than its keys.
    pub(super) fn known(&self, owner: &Owner) -> Own {
        self.owners.get(owner).unwrap_or_else(|| Own {
            lease: ServerLease {
                id: LeaseId(0),
                since: BootInstant::START,
                revision: 0,
            },
            touched: None,
            id: id_of(owner).to_owned(),
            text: Vec::new(),
            is_unclear: true,
            has_entered: false,
        })
    }

    /// Carries out `then` if all places of the owner are as they should be. Says also whether it may have been carried out
    /// before, without an answer.
    pub(super) fn change(
        &self,
        request: Request<'_>,
        (keys, own): (&[Keys], &Own),
        then: Vec<Op>,
        deadline: &Deadline,
    ) -> Result<(Changed, bool)> {
        let mut compares = Vec::with_capacity(2 * keys.len());
        for keys in keys {
            let place = keys.place(&own.id);
            compares.extend(created(request).map(|at| Compare::CreatedAt(place.clone(), at)));
            compares.push(Compare::Value(place, own.text.clone()));
        }
        let txn = Txn {
            compares,
            then,
            otherwise: show(keys, own, request.owner),
        };
        let name = request.key().name();
        let write = || self.write(request.owner, &txn, deadline);
        let (answer, was_sent) = self.until_answered(Some(name), deadline, write)?;
        let changed = if answer.succeeded {
            Changed::Done
        } else {
            Changed::Other(found(answer, request))
        };
        Ok((changed, was_sent))
    }
}

/// Shows the places of an owner, and whether it was broken.
pub(super) fn show(keys: &[Keys], own: &Own, owner: &Owner) -> Vec<Op> {
    let ops = |keys: &Keys| [get(keys.place(&own.id)), get(keys.broken(id_of(owner)))];
    keys.iter().flat_map(ops).collect()
}

/// What [`show`] has shown.
pub(super) fn found(answer: Answer, request: Request<'_>) -> Vec<Found> {
    let mut got = got(answer);
    let mut found = Vec::new();
    while let (Some(place), Some(broken)) = (got.next(), got.next()) {
        let own = place.into_iter().next();
        found.push(Found {
            own: own.filter(|entry| is_of(entry, request)),
            is_broken: !broken.is_empty(),
        });
    }
    found
}

/// A late copy of the owner's question may have put its place anew, when it was lost: then others may have had the name since.
fn is_of(entry: &Entry, request: Request<'_>) -> bool {
    let is_same = created(request).is_none_or(|at| at == entry.created);
    let text = Text::parse(&entry.value).filter(|_| is_same);
    text.is_some_and(|text| text.owner.as_ref() == Some(request.owner))
}

/// When the places of the lease were created, if the request is about one that was granted.
fn created(request: Request<'_>) -> Option<u64> {
    request.granted.map(revision_of)
}
