//! How an owner comes into the line, and to the front of it.
//!
//! | transaction | condition | then | else |
//! |---|---|---|---|
//! | enter, alone | nobody is in line | it has the lock | if it waits, it is in line; sees who is ahead |
//! | enter, with others | it isn't broken, or in line | it is in line; sees who is ahead | |
//! | the same without waiting | nobody is in line, or came since a look | the same | sees who is ahead |
//! | acquire, alone | it is in line, and nobody is ahead | it has the lock | sees who is ahead |
//!
//! No transaction puts a place again that is there. One that comes late would put it back under the lease with which
//! its owner came, when the lock was passed on, or stays taken after its release; and the place would end with that
//! lease.

use super::client::{Answer, Compare, Failure, KeptAlive, Op, OpResult, Range, Txn};
use super::far::{as_written, has_to_move, is_far, put_under};
use super::look::{Look, others};
use super::store::{EtcdStore, get, got, next_keepalive, put_marker, put_place, reading, value_of};
use super::{keys::Keys, leases::Own};
use crate::base::{Deadline, Owner, Stored};
use crate::engine::line::{Presence, Step, When, token_of, uuid_of};
use crate::engine::{Failed, Grant, Request};

type Stepped = Result<Step, Failed<Failure>>;

impl EtcdStore {
    /// Takes the lock alone if nobody is in line, and else stands in line, if it waits.
    pub(super) fn enter_alone(
        &self,
        request: Request<'_>,
        own: &Own,
        waits: bool,
        deadline: &Deadline,
    ) -> Stepped {
        let keys = self.keys(request.claim);
        let free = |keys: &Keys| {
            let broken = keys.broken(uuid_of(request.owner));
            [keys.line(), Range::Key(broken)].map(Compare::Absent)
        };
        let mut then = put_under(&keys, own, own.lease.id);
        then.extend(self.marking(request, own, &keys, deadline)?);
        let mut otherwise = Vec::new();
        if waits {
            let stand = |keys| stand_in_line(keys, own, request.owner);
            otherwise.extend(keys.iter().map(stand));
        }
        let look = Look::of(self, request, own, None);
        otherwise.extend(look.ops());
        let txn = Txn {
            compares: keys.iter().flat_map(free).collect(),
            then,
            otherwise,
        };
        let answer = self.write_with_marker(request.owner, &txn, deadline)?;
        let written = answer.succeeded || answer.results.contains(&OpResult::If(true));
        self.check_data(request.owner, own, (&answer, written))?;
        let created = answer.revision;
        let is_far = !answer.succeeded && is_far(answer.most_keys);
        self.owners.change(request.owner, |own| own.is_far = is_far);
        self.acquired(request, answer, (created, look), deadline)
    }

    /// Has the lock alone from now on, if nobody is ahead any more.
    pub(super) fn acquire(&self, request: Request<'_>, own: &Own, deadline: &Deadline) -> Stepped {
        let Some(created) = own.created else {
            return self.see(request, own, deadline);
        };
        let keys = self.keys(request.claim);
        let look = Look::of(self, request, own, Some(created));
        let has_to_move = has_to_move(own);
        let is_first = |keys: &Keys| {
            // It is there since then: one that was deleted, and put again late, has others ahead of it.
            let is_there = match has_to_move {
                true => as_written(keys, own),
                false => Compare::CreatedAt(keys.place(&own.id), created),
            };
            [is_there, Compare::NoneCreatedBefore(keys.line(), created)]
        };
        let mut then = self.marking(request, own, &keys, deadline)?;
        if has_to_move {
            let lease = self.leases.grant(request.ttl, deadline);
            let (lease, _) = lease.map_err(Failed::unsent)?;
            self.moves_to(request, lease);
            then.extend(put_under(&keys, own, lease.id));
        }
        let txn = Txn {
            compares: keys.iter().flat_map(is_first).collect(),
            then,
            otherwise: look.ops(),
        };
        let answer = self.write_with_marker(request.owner, &txn, deadline);
        if has_to_move {
            self.went_over(request, own, &answer);
        }
        self.acquired(request, answer?, (created, look), deadline)
    }

    /// Moves the owner's entry to a long lease.
    pub(super) fn stretch(&self, request: Request<'_>, own: &Own, deadline: &Deadline) -> Stepped {
        let lease = self.leases.take(request.ttl, true, deadline);
        let lease = lease.map_err(Failed::unsent)?;
        self.moves_to(request, lease);
        let look = Look::of(self, request, own, own.created);
        let keys = self.keys(request.claim);
        let txn = Txn {
            compares: keys.iter().map(|keys| as_written(keys, own)).collect(),
            then: put_under(&keys, own, lease.id),
            otherwise: look.ops(),
        };
        let answer = self.write(request.owner, &txn, deadline);
        self.went_over(request, own, &answer);
        let answer = answer?;
        if !answer.succeeded {
            return self.shown(request, &look, answer, deadline);
        }
        let taken = Own {
            lease,
            ..own.clone()
        };
        if self
            .check_data(request.owner, &taken, (&answer, true))
            .is_err()
        {
            self.drop_lease(request.owner, deadline);
            return Ok(Step::Lost);
        }
        Ok(Step::Same)
    }

    /// Puts the owner's holder markers, and reads whether others have left some.
    fn marking(
        &self,
        request: Request<'_>,
        own: &Own,
        keys: &[Keys],
        deadline: &Deadline,
    ) -> Result<Vec<Op>, Failed<Failure>> {
        let memory = self.leases.memory(deadline).map_err(Failed::unsent)?;
        let mut ops = Vec::with_capacity(2 * keys.len() + 1);
        ops.extend(keys.iter().map(|keys| put_marker(keys, own, memory)));
        ops.extend(keys.iter().map(|keys| keys.some_markers(2)));
        if request.claim.has_value {
            ops.extend(keys.first().map(|keys| get(keys.value())));
        }
        Ok(ops)
    }

    /// Carries out what notes that the owner was let in, and knows afterwards whether that may be there.
    fn write_with_marker(
        &self,
        owner: &Owner,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Answer, Failed<Failure>> {
        let answer = self.write(owner, txn, deadline);
        let may_be_there = match &answer {
            Ok(answer) => answer.succeeded,
            Err(failed) => failed.sent,
        };
        if may_be_there {
            let mut is_first = false;
            self.owners.change(owner, |own| {
                is_first = !own.has_marker;
                own.has_marker = true;
            });
            if is_first {
                self.leases.remembers();
            }
        }
        answer
    }

    fn acquired(
        &self,
        request: Request<'_>,
        answer: Answer,
        (created, look): (u64, Look<'_>),
        deadline: &Deadline,
    ) -> Stepped {
        self.owners
            .change(request.owner, |own| own.confirm(answer.by));
        if !answer.succeeded {
            return self.shown(request, &look, answer, deadline);
        }
        let own = self.known(request.owner);
        let mut got = got(answer);
        let entered: Vec<_> = got.by_ref().take(request.claim.keys().len()).collect();
        let value = request
            .claim
            .has_value
            .then(|| got.next().and_then(value_of));
        self.owners
            .change(request.owner, |own| own.created = Some(created));
        self.granted(request, (others(&entered, &own.id), value), deadline)
    }

    /// The owner has the lock, if its lease lasts.
    pub(super) fn granted(
        &self,
        request: Request<'_>,
        (abandoned, value): (bool, Option<Stored>),
        deadline: &Deadline,
    ) -> Stepped {
        let (now, own) = (self.clock.now(), self.known(request.owner));
        let Some(created) = own.created else {
            return self.see(request, &own, deadline);
        };
        let mut since = own.lease.since;
        if request.ttl / 2 < now.since(since) {
            // It has its entries, whatever comes of this question.
            let has_entries = |e| Failed { sent: true, ..e };
            match self
                .keepalive(request, &own, deadline)
                .map_err(has_entries)?
            {
                Step::Seen(seen) if seen.own == Presence::Entries && !seen.is_broken => {
                    since = self.known(request.owner).lease.since;
                }
                other => return Ok(other),
            }
        }
        Ok(Step::In(Grant {
            token: token_of(created, abandoned),
            value,
            since,
        }))
    }

    /// Stands in line among others that may hold the name at the same time.
    pub(super) fn enter_among(
        &self,
        request: Request<'_>,
        own: &Own,
        when: When,
        deadline: &Deadline,
    ) -> Stepped {
        let keys = self.keys(request.claim);
        let look = Look::of(self, request, own, None);
        let lets_in = |keys: &Keys| match when {
            When::Always => None,
            When::IfFree => Some(Compare::Absent(keys.line())),
            When::AsSeen(revision) => Some(Compare::CreatedBefore(keys.line(), revision + 1)),
        };
        let is_new = |keys| is_new(keys, own, request.owner);
        let compares = keys.iter().filter_map(lets_in);
        let mut then = put_under(&keys, own, own.lease.id);
        then.extend(look.ops());
        let txn = Txn {
            compares: compares.chain(keys.iter().flat_map(is_new)).collect(),
            then,
            otherwise: look.ops(),
        };
        let answer = self.write(request.owner, &txn, deadline)?;
        self.check_data(request.owner, own, (&answer, answer.succeeded))?;
        self.owners
            .change(request.owner, |own| own.confirm(answer.by));
        self.shown(request, &look, answer, deadline)
    }

    /// What an answer shows. If others have come behind the owner, of those ahead too few may have been looked at,
    /// when it wasn't known since when the owner is in line. Then it is.
    fn shown(
        &self,
        request: Request<'_>,
        look: &Look<'_>,
        answer: Answer,
        deadline: &Deadline,
    ) -> Stepped {
        match look.seen(self, answer) {
            (seen, true) if seen.own == Presence::Entries => {
                self.see(request, &self.known(request.owner), deadline)
            }
            (seen, _) => Ok(Step::Seen(seen)),
        }
    }

    /// Sees how the names stand.
    pub(super) fn see(&self, request: Request<'_>, own: &Own, deadline: &Deadline) -> Stepped {
        let look = Look::of(self, request, own, own.created);
        let answer = self.read(look.ops(), deadline);
        let answer = answer.map_err(Failed::unsent)?;
        self.owners
            .change(request.owner, |own| own.confirm(answer.by));
        self.shown(request, &look, answer, deadline)
    }

    /// Keeps the owner's entry for another ttl, and reads nothing. The next answer of the same member proves that:
    /// see `Proof`. Where the member isn't known to lead on, it is proved at once.
    pub(super) fn touch(&self, request: Request<'_>, own: &Own, deadline: &Deadline) -> Stepped {
        let touched = self.client.touch(own.lease.id, deadline);
        let Some(touched) = touched.map_err(Failed::unsent)? else {
            return self.keepalive(request, own, deadline);
        };
        self.owners.change(request.owner, |own| {
            own.touched = Some(touched);
            own.keepalive = next_keepalive(touched.since, own.lease.time(request.ttl));
        });
        Ok(Step::Same)
    }

    /// Keeps the owner's entry for another ttl, proves that, and sees how the names stand.
    pub(super) fn keepalive(
        &self,
        request: Request<'_>,
        own: &Own,
        deadline: &Deadline,
    ) -> Stepped {
        let look = Look::of(self, request, own, own.created);
        let kept = self.keep_alive(request, own, &reading(look.ops()), deadline);
        let kept = kept.map_err(Failed::unsent)?;
        let (seen, _) = look.seen(self, kept.answer);
        // They may have been seen to be under another lease, that of an earlier question.
        let is_its = self.known(request.owner).lease.id == own.lease.id;
        // Where it has entries left they are given up.
        if kept.since.is_none() && is_its && seen.own == Presence::Entries && !seen.is_broken {
            self.drop_lease(request.owner, deadline);
            return Ok(Step::Lost);
        }
        Ok(Step::Seen(seen))
    }

    /// Keeps the owner's lease alive, and then carries out `look`, which only reads. Without an answer it is repeated
    /// as it is.
    pub(super) fn keep_alive(
        &self,
        request: Request<'_>,
        own: &Own,
        look: &Txn,
        deadline: &Deadline,
    ) -> Result<KeptAlive, Failure> {
        let kept = self.client.keep_alive(own.lease.id, look, deadline)?;
        self.owners.change(request.owner, |known| {
            known.confirm(kept.answer.by);
            if let Some(since) = kept.since.filter(|_| known.lease.id == own.lease.id) {
                known.lease.since = known.lease.since.max(since);
                known.keepalive = next_keepalive(known.lease.since, known.lease.time(request.ttl));
            }
        });
        Ok(kept)
    }
}

/// The owner has no place there, and isn't broken.
fn is_new(keys: &Keys, own: &Own, owner: &Owner) -> [Compare; 2] {
    [keys.place(&own.id), keys.broken(uuid_of(owner))].map(|key| Compare::Absent(Range::Key(key)))
}

fn stand_in_line(keys: &Keys, own: &Own, owner: &Owner) -> Op {
    Op::If(Txn {
        compares: is_new(keys, own, owner).into(),
        then: vec![put_place(keys, own, own.lease.id)],
        otherwise: Vec::new(),
    })
}
