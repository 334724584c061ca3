//! How a lease goes on in another process: the place stays, and its owner is another one, with a lease of its own.

use super::change::show;
use super::ops::look;
use super::seen::{Look, Part, Seen};
use super::shared::Commands;
use crate::base::claim::Mode;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::Result;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::etcd::client::failure::Failure;
use crate::engine::etcd::client::txn::{Answer, Compare, Op, Txn};
use crate::engine::etcd::leases::ServerLease;
use crate::engine::etcd::owners::Own;
use crate::engine::etcd::place::{Place, Text};
use crate::engine::{Grant, Request, Unanswered};

impl Commands {
    pub(in super::super) fn adopt(
        &self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
        deadline: &Deadline,
    ) -> Result<Option<Grant>> {
        let name = request.key().name();
        let token = self.next_token(name, last_used)?;
        loop {
            let own = self.own(request, deadline);
            let own = own.map_err(|e| self.error(Some(name), e))?;
            let seen = self.see_both(request, deadline)?;
            if let Some(token) = adopted(&seen, request.owner) {
                return self.adopted_before(request, &seen, token, deadline);
            }
            let places = places_of(&seen, from, request.claim.mode);
            let Some(places) = places else {
                self.retire(request.owner, deadline);
                return Ok(None);
            };
            let (own, txn) = adoption(own, &places, token, request.owner);
            self.know(request, own.clone());
            let answer = self.write_adoption(request, &txn, deadline)?;
            if answer.is_some_and(|answer| answer.succeeded) {
                self.follows(request, from, &places, deadline);
                return Ok(Some(Grant {
                    token,
                    value: None,
                    since: own.lease.since,
                }));
            }
            // Another has changed it meanwhile, an answer was lost, or the lease is gone.
        }
    }

    /// `None`: the lease that the owner was to have is gone, and it takes another.
    fn write_adoption(
        &self,
        request: Request<'_>,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Option<Answer>> {
        let write = || match self.write(request.owner, txn, deadline) {
            Err(e) if matches!(e.error, Failure::LeaseGone) => Ok(None),
            answer => answer.map(Some),
        };
        let name = request.key().name();
        let (answer, _) = self.until_answered(Some(name), deadline, write)?;
        if answer.is_none() {
            self.drop_lease(request.owner, deadline);
        }
        Ok(answer)
    }

    /// The owner goes on in these places of the other.
    fn follows(&self, request: Request<'_>, from: &Owner, places: &[&Place], deadline: &Deadline) {
        if request.claim.is_exclusive() {
            self.leases.remembers();
            self.owners
                .change(request.owner, |own| own.has_entered = true);
        }
        if let Some(other) = self.owners.get(from) {
            // It was an owner of this process: what tells of it is counted once, and its lease is for the next.
            if other.has_entered {
                self.leases.forgets();
            }
            self.retire(from, deadline);
        } else if let Some(lease) = places.first().and_then(|place| place.lease) {
            // A question of the other that comes late would take the places back.
            self.leases.end(lease, deadline);
        }
    }

    fn see_both(&self, request: Request<'_>, deadline: &Deadline) -> Result<Seen> {
        const BOTH: Look<'_> = Look {
            line: Part::Whole,
            entered: false,
            value: false,
        };
        let keys = self.keys(request.claim);
        let read = || self.read(BOTH.ops(&keys, request.owner), deadline);
        let answer = self.until_read(Some(request.key().name()), deadline, read)?;
        Ok(BOTH.seen(answer, keys.len()))
    }

    /// An answer to an adoption was lost: the owner has it, and its lease is proved anew.
    fn adopted_before(
        &self,
        request: Request<'_>,
        seen: &Seen,
        token: u64,
        deadline: &Deadline,
    ) -> Result<Option<Grant>> {
        let name = request.key().name();
        let place = seen.lines.first().and_then(|line| line.find(request.owner));
        let (Some((_, place)), Some(own)) = (place, self.owners.get(request.owner)) else {
            return Ok(None);
        };
        let Some(lease) = place.lease else {
            return Ok(None);
        };
        let mut own = Own {
            id: place.id.clone(),
            ..own
        };
        if own.lease.id != lease {
            own.lease = ServerLease {
                id: lease,
                ..own.lease
            };
        }
        own.text = text_of(place, request.owner, token).to_bytes();
        own.has_entered = request.claim.is_exclusive();
        self.know(request, own.clone());
        let beat = || self.beat_at(request, &own, deadline);
        let (since, _) = self.until_answered(Some(name), deadline, beat)?;
        let Some(since) = since else { return Ok(None) };
        Ok(Some(Grant {
            token: Token::from_number(token),
            value: None,
            since,
        }))
    }

    /// Since when the owner's lease lasts; `None`: it has ended.
    fn beat_at(
        &self,
        request: Request<'_>,
        own: &Own,
        deadline: &Deadline,
    ) -> Result<Option<BootInstant>, Unanswered<Failure>> {
        let keys = self.keys(request.claim);
        let look = look(show(&keys, own, request.owner));
        let kept = self.prove(request, own, &look, deadline);
        kept.map(|kept| kept.since).map_err(Unanswered::unsent)
    }
}

/// The token by which the owner has all names already.
fn adopted(seen: &Seen, owner: &Owner) -> Option<u64> {
    let tokens = seen.lines.iter().map(|line| {
        let (_, place) = line.find(owner)?;
        place.text.as_ref()?.token
    });
    let tokens: Option<Vec<_>> = tokens.collect();
    tokens?.into_iter().max()
}

/// The places of an owner that has all names in that way.
fn places_of<'a>(seen: &'a Seen, owner: &Owner, mode: Mode) -> Option<Vec<&'a Place>> {
    let lines = seen.lines.iter();
    let places = lines.map(|line| Some(line.find(owner)?.1).filter(|place| place.mode() == mode));
    places.collect()
}

fn text_of(place: &Place, owner: &Owner, token: u64) -> Text {
    let since = place.text.as_ref().map_or(0, |text| text.since);
    Text {
        mode: place.mode(),
        owner: Some(owner.clone()),
        since,
        token: Some(token),
    }
}

/// Makes the places of another owner this one's.
fn adoption(own: Own, places: &[&Place], token: Token, owner: &Owner) -> (Own, Txn) {
    let mut own = own;
    let mut txn = Txn::default();
    if let Some(first) = places.first() {
        own.id = first.id.clone();
        own.text = text_of(first, owner, token.number).to_bytes();
    }
    for place in places {
        txn.compares
            .push(Compare::ModifiedAt(place.key.clone(), place.modified));
        txn.then.push(Op::Put {
            key: place.key.clone(),
            value: own.text.clone(),
            lease: Some(own.lease.id),
        });
    }
    (own, txn)
}
