//! How an owner comes into the line, and to the front of it.
//!
//! | transaction | condition | then | else |
//! |---|---|---|---|
//! | enter, alone | nobody is in line | the owner is in line, and has entered | it is in line, if it waits; what stands ahead is seen |
//! | enter, with others | the owner isn't broken, or in line | it is in line; what stands ahead is seen | |
//! | enter, with others, without waiting | nobody is in line, or nobody has come since a look | the same | what stands ahead is seen |
//! | go in, alone | the owner is in line, and nobody is ahead | it has entered | what stands ahead is seen |
//!
//! No transaction puts a place again that is there. One that comes late would put it back under the lease with which its owner came, when
//! the lock was passed on, or stays taken after its release; and the place would end with that lease.

use super::ops::{get, got, look, value_of};
use super::seen::{Look, Part, Seen, others};
use super::shared::Commands;
use crate::base::claim::Mode;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::owner::Owner;
use crate::base::value::Stored;
use crate::engine::etcd::client::KeptAlive;
use crate::engine::etcd::client::failure::Failure;
use crate::engine::etcd::client::proof;
use crate::engine::etcd::client::txn::{Answer, Compare, LeaseId, Op, OpResult, Range, Txn};
use crate::engine::etcd::keys::{Keys, id_of};
use crate::engine::etcd::owners::Own;
use crate::engine::{Request, Unanswered};

/// What came of it.
#[derive(Debug)]
pub(in super::super) enum Entered {
    /// The owner has the lock alone; and the member that has said so, and in which term.
    In(Entry, proof::Seen),
    Seen(Seen),
    /// It is in line as before, and its lease was kept alive then.
    Kept(BootInstant),
}

/// How an owner came to have the lock.
#[derive(Debug)]
pub(in super::super) struct Entry {
    pub(in super::super) created: u64,
    pub(in super::super) abandoned: bool,
    pub(in super::super) value: Option<Stored>,
}

type Outcome = Result<Entered, Unanswered<Failure>>;

impl Commands {
    /// Takes the lock alone if nobody is in line, and else stands in line, if it waits.
    pub(in super::super) fn enter_alone(
        &self,
        request: Request<'_>,
        own: &Own,
        waits: bool,
        deadline: &Deadline,
    ) -> Outcome {
        let keys = self.keys(request.claim);
        let mut compares = Vec::with_capacity(2 * keys.len());
        for keys in &keys {
            compares.push(Compare::Absent(keys.line()));
            let broken = keys.broken(id_of(request.owner));
            compares.push(Compare::Absent(Range::Key(broken)));
        }
        let mut then: Vec<_> = keys.iter().map(|keys| put_place(keys, own)).collect();
        then.extend(self.entering(request, own, &keys, deadline)?);
        let mut otherwise = Vec::with_capacity(3 * keys.len());
        if waits {
            otherwise.extend(
                keys.iter()
                    .map(|keys| stand_in_line(keys, own, request.owner)),
            );
        }
        let look = look_of(request, own, None);
        otherwise.extend(look.ops(&keys, request.owner));
        let txn = Txn {
            compares,
            then,
            otherwise,
        };
        let answer = self.write_entering(request.owner, &txn, deadline)?;
        let written = answer.succeeded || answer.results.contains(&OpResult::If(true));
        self.check_data(request.owner, own, (&answer, written))?;
        let created = answer.revision;
        Ok(self.went_in(request, own, answer, (created, look)))
    }

    /// Has the lock alone from now on, if nobody is ahead any more.
    pub(in super::super) fn go_in(
        &self,
        request: Request<'_>,
        own: &Own,
        created: u64,
        deadline: &Deadline,
    ) -> Outcome {
        let (keys, look) = (
            self.keys(request.claim),
            look_of(request, own, Some(created)),
        );
        let mut compares = Vec::with_capacity(2 * keys.len());
        for keys in &keys {
            // It is there since then: one that was deleted, and put again late, has others ahead of it.
            compares.push(Compare::CreatedAt(keys.place(&own.id), created));
            compares.push(Compare::NoneCreatedBefore(keys.line(), created));
        }
        let txn = Txn {
            compares,
            then: self.entering(request, own, &keys, deadline)?,
            otherwise: look.ops(&keys, request.owner),
        };
        let answer = self.write_entering(request.owner, &txn, deadline)?;
        Ok(self.went_in(request, own, answer, (created, look)))
    }

    /// Notes that the owner was let in alone, for the next if it doesn't release; and sees who else didn't.
    fn entering(
        &self,
        request: Request<'_>,
        own: &Own,
        keys: &[Keys],
        deadline: &Deadline,
    ) -> Result<Vec<Op>, Unanswered<Failure>> {
        let memory = self.leases.memory(deadline).map_err(Unanswered::unsent)?;
        let mut ops = Vec::with_capacity(2 * keys.len() + 1);
        ops.extend(keys.iter().map(|keys| put_entered(keys, own, memory)));
        ops.extend(keys.iter().map(|keys| Op::Get(keys.entered())));
        if request.claim.valued {
            ops.extend(keys.first().map(|keys| get(keys.value())));
        }
        Ok(ops)
    }

    /// Carries out what notes that the owner was let in, and knows afterwards whether that may be there.
    fn write_entering(
        &self,
        owner: &Owner,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        let answer = self.write(owner, txn, deadline);
        let may_be_there = match &answer {
            Ok(answer) => answer.succeeded,
            Err(unanswered) => unanswered.sent,
        };
        if may_be_there {
            let mut is_first = false;
            self.owners.change(owner, |own| {
                is_first = !own.has_entered;
                own.has_entered = true;
            });
            if is_first {
                self.leases.remembers();
            }
        }
        answer
    }

    fn went_in(
        &self,
        request: Request<'_>,
        own: &Own,
        answer: Answer,
        (created, look): (u64, Look<'_>),
    ) -> Entered {
        let names = request.claim.keys().len();
        if !answer.succeeded {
            return Entered::Seen(look.seen(answer, names));
        }
        let by = answer.by;
        let mut got = got(answer);
        let entered: Vec<_> = got.by_ref().take(names).collect();
        let entry = Entry {
            created,
            abandoned: others(&entered, &own.id),
            value: (request.claim.valued).then(|| got.next().and_then(value_of)),
        };
        Entered::In(entry, by)
    }

    /// Stands in line among others that may hold the name at the same time, wherever that is.
    pub(in super::super) fn enter_line(
        &self,
        request: Request<'_>,
        own: &Own,
        deadline: &Deadline,
    ) -> Outcome {
        self.enter_if(request, own, Vec::new(), deadline)
    }

    /// Does so only if nobody is in line.
    pub(in super::super) fn enter_empty_line(
        &self,
        request: Request<'_>,
        own: &Own,
        deadline: &Deadline,
    ) -> Outcome {
        let lines = self.keys(request.claim).into_iter();
        let nobody = lines.map(|keys| Compare::Absent(keys.line())).collect();
        self.enter_if(request, own, nobody, deadline)
    }

    /// Does so only if nobody has come since that revision.
    pub(in super::super) fn enter_line_as_seen(
        &self,
        request: Request<'_>,
        own: &Own,
        revision: u64,
        deadline: &Deadline,
    ) -> Outcome {
        let lines = self.keys(request.claim).into_iter();
        let as_seen = |keys: Keys| Compare::CreatedBefore(keys.line(), revision + 1);
        self.enter_if(request, own, lines.map(as_seen).collect(), deadline)
    }

    fn enter_if(
        &self,
        request: Request<'_>,
        own: &Own,
        mut compares: Vec<Compare>,
        deadline: &Deadline,
    ) -> Outcome {
        let keys = self.keys(request.claim);
        let look = look_of(request, own, None);
        compares.extend(
            keys.iter()
                .flat_map(|keys| is_new(keys, own, request.owner)),
        );
        let mut then: Vec<_> = keys.iter().map(|keys| put_place(keys, own)).collect();
        then.extend(look.ops(&keys, request.owner));
        let txn = Txn {
            compares,
            then,
            otherwise: look.ops(&keys, request.owner),
        };
        let answer = self.write(request.owner, &txn, deadline)?;
        self.check_data(request.owner, own, (&answer, answer.succeeded))?;
        Ok(Entered::Seen(look.seen(answer, keys.len())))
    }

    /// Sees how the names stand.
    pub(in super::super) fn look(
        &self,
        request: Request<'_>,
        own: &Own,
        created: Option<u64>,
        deadline: &Deadline,
    ) -> Outcome {
        let (keys, look) = (self.keys(request.claim), look_of(request, own, created));
        let answer = self.read(look.ops(&keys, request.owner), deadline);
        let answer = answer.map_err(Unanswered::unsent)?;
        Ok(Entered::Seen(look.seen(answer, keys.len())))
    }

    /// Keeps the owner's place in line for another ttl, and reads nothing. Where the member isn't known to lead on, it proves that.
    pub(in super::super) fn keep(
        &self,
        request: Request<'_>,
        own: &Own,
        created: u64,
        deadline: &Deadline,
    ) -> Outcome {
        let touched = self.client.touch(own.lease.id, deadline);
        let touched = touched.map_err(Unanswered::unsent)?;
        let Some(touched) = touched else {
            return self.beat(request, own, created, deadline);
        };
        self.owners
            .change(request.owner, |own| own.touched = Some(touched));
        Ok(Entered::Kept(touched.since))
    }

    /// Keeps the owner's place in line for another ttl, proves that, and sees how the names stand.
    pub(in super::super) fn beat(
        &self,
        request: Request<'_>,
        own: &Own,
        created: u64,
        deadline: &Deadline,
    ) -> Outcome {
        let keys = self.keys(request.claim);
        let sees = look_of(request, own, Some(created));
        let txn = look(sees.ops(&keys, request.owner));
        let kept = self.prove(request, own, &txn, deadline);
        let kept = kept.map_err(Unanswered::unsent)?;
        let seen = sees.seen(kept.answer, keys.len());
        // Where it has places left they are given up.
        let is_whole = seen.created(request.owner).is_some();
        if kept.since.is_none() && is_whole && !seen.is_broken {
            return Err(Unanswered::unsent(Failure::LeaseGone));
        }
        Ok(Entered::Seen(seen))
    }

    /// Keeps the owner's lease alive, and then carries out `look`, which only reads. Without an answer it is repeated as it is.
    pub(super) fn prove(
        &self,
        request: Request<'_>,
        own: &Own,
        look: &Txn,
        deadline: &Deadline,
    ) -> Result<KeptAlive, Failure> {
        let kept = self.client.keep_alive(own.lease.id, look, deadline)?;
        if let Some(since) = kept.since {
            self.owners.change(request.owner, |known| {
                if known.lease.id == own.lease.id {
                    known.lease.since = known.lease.since.max(since);
                }
            });
        }
        Ok(kept)
    }
}

/// What an owner sees, which was created then, if it knows that it is in line.
fn look_of<'a>(request: Request<'_>, own: &'a Own, created: Option<u64>) -> Look<'a> {
    let is_alone = request.claim.is_exclusive();
    let deciding = match request.claim.mode {
        Mode::Exclusive => Some(1),
        // Each of them has one at least.
        Mode::Permits { count, of } => Some(of.saturating_sub(count).saturating_add(1)),
        // Only one that doesn't read is in the way of a reader, however many readers are between.
        Mode::Shared => None,
    };
    // etcd takes 128 operations in a transaction: of 40 names each may have three.
    let line = match request.claim.keys() {
        [_] => Part::Ahead {
            id: &own.id,
            created,
            deciding,
        },
        _ => Part::Whole,
    };
    Look {
        line,
        entered: !is_alone,
        value: !is_alone && request.claim.valued,
    }
}

/// The owner has no place there, and isn't broken.
fn is_new(keys: &Keys, own: &Own, owner: &Owner) -> [Compare; 2] {
    [keys.place(&own.id), keys.broken(id_of(owner))].map(|key| Compare::Absent(Range::Key(key)))
}

fn stand_in_line(keys: &Keys, own: &Own, owner: &Owner) -> Op {
    Op::If(Txn {
        compares: is_new(keys, own, owner).into(),
        then: vec![put_place(keys, own)],
        otherwise: Vec::new(),
    })
}

fn put_place(keys: &Keys, own: &Own) -> Op {
    Op::Put {
        key: keys.place(&own.id),
        value: own.text.clone(),
        lease: Some(own.lease.id),
    }
}

/// For those who look, since when.
pub(super) fn put_entered(keys: &Keys, own: &Own, memory: LeaseId) -> Op {
    Op::Put {
        key: keys.entered_by(&own.id),
        value: super::ops::host_millis().to_string().into_bytes(),
        lease: Some(memory),
    }
}
