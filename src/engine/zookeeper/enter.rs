//! How an owner comes into line, and is let in.
//!
//! `held` is made together with the nodes, if nobody has it; this is the way of a free lock. It belongs to whoever
//! stands first: an owner that finds itself behind another gives it to that one, or deletes it. So whoever is first
//! and finds the `held` of an owner that isn't in line any more knows that this one never released the lock.

use super::call::{Call, Listing};
use super::client::{Change, Code, Failure, Kind, Op, Replies, Reply};
use super::nodes::{self, Children, LeadersClock, MARKER, Name, marker, read_marker};
use super::{leases::give_up_marker, owners::Nodes, sweep::sweep_if_due};
use crate::base::{BootInstant, Owner};
use crate::engine::Grant;
use crate::engine::line::{Presence, Step, When, Why, token_of};

type Stepped = Result<Step, Failure>;

/// Nodes that were just made.
struct Made {
    paths: Vec<String>,
    /// Which transaction has made them, if the answer says so.
    created: Option<i64>,
    /// The last transaction that the server knew when it answered.
    answered_at: Option<i64>,
    leaders_clock: Option<LeadersClock>,
}

impl Call<'_> {
    /// Makes a node for each name, and lists them all: one round. An exclusive owner makes `held` of each name in the
    /// same transaction, so that a free lock costs no other; not where one was in the way lately. One that doesn't
    /// wait looks before.
    pub(super) fn enter(&self, when: When) -> Stepped {
        if when != When::Always {
            let mut seen = self.look()?;
            self.collect_garbage(&mut seen)?;
            if self.is_blocked(&seen) {
                return Ok(Step::Seen(self.snapshot(seen, Presence::Nothing)));
            }
        }
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        let marks =
            self.request.claim.is_exclusive() && !self.locks.contended.has(self.request.claim);
        let entering = [self.entering(marks)].into_iter();
        let requests: Vec<_> = entering.chain(self.listing()).collect();
        owners.asks(owner, self.session.id());
        let replies = self.session.call(&requests, &self.deadline);
        let mut replies = replies.inspect_err(|failed| {
            if !failed.sent {
                owners.remove(owner);
            }
        })?;
        let answered = self.locks.clock.now();
        match self.made(&mut replies, answered) {
            Ok(made) => {
                owners.has(owner, made.paths.clone());
                let seen = self.listed(&mut replies)?;
                self.entered(made, seen, marks)
            }
            Err(failure) => {
                owners.remove(owner);
                self.not_entered(failure, marks)
            }
        }
    }

    /// What makes the owner's nodes: of several names in one transaction, so that none of those that want the same
    /// ones comes between.
    fn entering(&self, marks: bool) -> Op {
        let node = nodes::unnumbered(self.request.claim.mode, self.uuid());
        let (data, kind) = (
            self.locks.node_data(self.request, None),
            Kind::EphemeralSequential,
        );
        if let ([name], false) = (&self.names[..], marks) {
            let path = name.child(&node);
            return Op::Change(Change::Create { path, data, kind });
        }
        let create = |name: &Name| Change::Create {
            path: name.child(&node),
            data: data.clone(),
            kind,
        };
        let held =
            |name: &Name| Change::create(name.child(MARKER), marker(self.request.owner, false));
        let marked = self.names.iter().filter(|_| marks);
        let changes = self.names.iter().map(create).chain(marked.map(held));
        Op::Multi(changes.collect())
    }

    fn made(&self, replies: &mut Replies, answered: BootInstant) -> Result<Made, Failure> {
        match replies.next()?? {
            Reply::Created { path, stat } => Ok(Made {
                paths: vec![path],
                created: Some(stat.czxid),
                answered_at: None,
                leaders_clock: Some(LeadersClock(stat.ctime, answered)),
            }),
            Reply::Multi { done, zxid } => {
                let made = done.map_err(|refused| refused.code)?.into_iter();
                Ok(Made {
                    paths: made.take(self.names.len()).collect(),
                    created: None,
                    answered_at: Some(zxid),
                    leaders_clock: None,
                })
            }
            _ => Err(Failure::misunderstood()),
        }
    }

    /// The servers refuse it: it may be tried again, if what was missing is there then.
    fn not_entered(&self, failure: Failure, marks: bool) -> Stepped {
        match failure {
            Failure::Refused(Code::NO_NODE) => {
                self.locks
                    .make(&self.session, &self.names, &self.deadline)?;
                Ok(Step::Lost)
            }
            Failure::Refused(Code::NODE_EXISTS) if marks => {
                self.locks.contended.insert(self.request.claim);
                Ok(Step::Lost)
            }
            other => Err(other),
        }
    }

    fn entered(&self, made: Made, mut seen: Listing, marks: bool) -> Stepped {
        if !self.has_all(&mut seen, &made.paths) {
            return self.gone();
        }
        // Where it is first, and nobody had `held`, although it didn't try to make that.
        let found_free =
            self.request.claim.is_exclusive() && !marks && self.is_first_and_free(&seen);
        if found_free {
            self.locks.contended.remove(self.request.claim);
        }
        let learned = made
            .answered_at
            .filter(|at| self.is_last_change(&seen, *at));
        self.locks.owners.change(self.request.owner, |nodes| {
            nodes.created = made.created.or(learned);
            (nodes.has_marker, nodes.found_free) = (marks, found_free);
            nodes.leaders_clock = made.leaders_clock.or(nodes.leaders_clock);
        });
        self.decide(seen)
    }

    /// Servers don't answer a transaction of several changes with the nodes' stat, so it is taken from the list that
    /// came with it. Where nobody has come or left since, the last change of the name is the transaction that has
    /// made the node. Whoever comes later has a larger one also if it isn't: nobody stands behind.
    fn is_last_change(&self, seen: &Listing, answered_at: i64) -> bool {
        seen.names.iter().all(|children| {
            let last = children.line.0.last();
            let is_own = last.is_some_and(|entry| entry.is_of(self.request.owner));
            is_own && children.changed == answered_at
        })
    }

    /// Whether it stands before all others, and nobody has `held`.
    fn is_first_and_free(&self, seen: &Listing) -> bool {
        seen.names.iter().all(|children| {
            let first = children.line.0.first();
            let is_own = first.is_some_and(|entry| entry.is_of(self.request.owner));
            is_own && !children.has_marker
        })
    }

    /// How an owner stands that is in line as far as it knows.
    pub(super) fn look_in_line(&self, why: Why) -> Stepped {
        let known = self.locks.owners.get(self.request.owner);
        let is_clear = |nodes: &Nodes| {
            why != Why::Unclear && !nodes.has_inflight && nodes.session == self.session.id()
        };
        let Some(known) = known.filter(is_clear) else {
            return self.find();
        };
        let mut seen = self.list()?;
        let had_some = self.has_some(&seen);
        if self.has_all(&mut seen, &known.paths) {
            return self.decide(seen);
        }
        self.lacks_some(seen, had_some)
    }

    /// It hasn't all of its nodes. Whoever gives up the others has to look for them.
    fn lacks_some(&self, seen: Listing, presence: Presence) -> Stepped {
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        match presence {
            Presence::Nothing => _ = owners.remove(owner),
            Presence::Remains | Presence::Entries => owners.asks(owner, self.session.id()),
        }
        Ok(Step::Seen(self.snapshot(seen, presence)))
    }

    fn has_some(&self, seen: &Listing) -> Presence {
        let is_there = |children: &Children| children.line.find(self.request.owner).is_some();
        match seen.names.iter().any(is_there) {
            true => Presence::Remains,
            false => Presence::Nothing,
        }
    }

    /// Finds what a question without an answer has made. What belongs to another session ends with that one.
    fn find(&self) -> Stepped {
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        let seen = self.look_at_own()?;
        let own = self.names.iter().zip(&seen.names).map(|(name, children)| {
            let (_, entry) = children.line.find(owner)?;
            let is_its = entry.session == Some(self.session.id());
            is_its.then(|| (name.child(&entry.id), entry.version.cast_signed()))
        });
        let Some(own) = own.collect::<Option<Vec<_>>>() else {
            let presence = self.has_some(&seen);
            return self.lacks_some(seen, presence);
        };
        let (paths, created): (Vec<_>, Vec<_>) = own.into_iter().unzip();
        owners.asks(owner, self.session.id());
        owners.has(owner, paths.clone());
        if self.locks.deletes(&paths) {
            // They are about to be deleted: its lease was over.
            return self.gone();
        }
        let is_blocked = self.is_blocked(&seen);
        owners.change(owner, |nodes| {
            nodes.created = created.into_iter().max();
            nodes.found_free = false;
            // Others may have had the lock since it made `held`. Where it is blocked it gives that up.
            nodes.has_marker &= is_blocked;
        });
        self.decide(seen)
    }

    /// What a look means for an owner that has its nodes: it is let in if nobody is in its way.
    fn decide(&self, mut seen: Listing) -> Stepped {
        self.collect_garbage(&mut seen)?;
        if !self.is_blocked(&seen) {
            return self.let_in(seen);
        }
        self.give_marker_away(&seen)?;
        Ok(Step::Seen(self.snapshot(seen, Presence::Entries)))
    }

    fn let_in(&self, seen: Listing) -> Stepped {
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        let Some(own) = owners.get(owner) else {
            return self.gone();
        };
        let (mut requests, was_abandoned) = match own.has_marker {
            true => (Vec::new(), false),
            false => self.marking(&seen)?,
        };
        let is_abandoned = own.is_abandoned || was_abandoned;
        let since = self.locks.proven(&self.session, &self.deadline)?;
        let watchers = self.locks.watchers(owner, own.paths.len());
        let watched = own.paths.iter().zip(watchers.iter().cloned());
        requests.extend(watched.map(|(path, watcher)| Op::watch(path, watcher)));
        let created = match own.created.filter(|_| !own.found_free) {
            Some(created) => {
                self.send(&requests)?;
                created
            }
            None => match self.learn(&own.paths, &requests)? {
                Some(created) => created,
                None => return self.gone(),
            },
        };
        owners.change(owner, |nodes| {
            nodes.created = Some(created);
            (nodes.found_free, nodes.is_abandoned) = (false, is_abandoned);
            nodes.has_marker = self.request.claim.is_exclusive();
        });
        if !owners.let_in(owner, since.plus(self.request.ttl), watchers) {
            return self.gone();
        }
        sweep_if_due(self.locks, self.request.key().namespace(), &self.names[0]);
        Ok(Step::In(Grant {
            token: token_of(created.try_into().unwrap_or(0), is_abandoned),
            value: seen.value,
            since,
        }))
    }

    /// It has lost its nodes, or some. What was listed before may not show that it was broken. Without an answer it may
    /// still have one, and must look for it.
    fn gone(&self) -> Stepped {
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        owners.asks(owner, self.session.id());
        self.lacks_some(self.list()?, Presence::Remains)
    }

    /// Asks that, and learns which transaction has made the nodes. `None` if they are gone.
    fn learn(&self, paths: &[String], requests: &[Op]) -> Result<Option<i64>, Failure> {
        let looks = paths.iter().cloned().map(Op::get);
        let all: Vec<_> = requests.iter().cloned().chain(looks).collect();
        let mut replies = self.ask(&all)?;
        for _ in requests {
            // What isn't there is found by the looks.
            let _ = replies.next()?;
        }
        let created = paths
            .iter()
            .map(|_| Ok(replies.data()?.map(|(_, stat)| stat.czxid)));
        let created = created.collect::<Result<Option<Vec<_>>, Failure>>()?;
        Ok(created.and_then(|created| created.into_iter().max()))
    }

    /// Finds out whether the owner before has left the lock without releasing it. Gives what still has to be asked to
    /// say that this one was let in.
    fn marking(&self, seen: &Listing) -> Result<(Vec<Op>, bool), Failure> {
        let (mut requests, mut is_abandoned) = (Vec::new(), false);
        let is_exclusive = self.request.claim.is_exclusive();
        for (name, children) in self.names.iter().zip(&seen.names) {
            let path = name.child(MARKER);
            let create = Change::create(path.clone(), marker(self.request.owner, false)).into();
            let held = match children.has_marker {
                true => self.ask(&[Op::get(path.clone())])?.data()?,
                false => None,
            };
            let Some((held, _)) = held else {
                requests.extend(is_exclusive.then_some(create));
                continue;
            };
            let (uuid, was_told) = read_marker(&held);
            let is_own = uuid == self.uuid();
            let is_in_line = children.line.find(&Owner::from_text(&uuid)).is_some();
            let was_abandoned = if is_own { was_told } else { !is_in_line };
            is_abandoned |= was_abandoned;
            if is_exclusive && !is_own {
                let data = marker(self.request.owner, was_abandoned);
                // It may be deleted at the same time by one that stands behind: then it is made.
                self.ask(&[Change::set(path, data).into()])?;
                requests.push(create);
            }
        }
        Ok((requests, is_abandoned))
    }

    /// Gives `held` of all names, made by an owner that stands behind others, to those, if they are still there.
    /// Whoever is first may be quicker.
    fn give_marker_away(&self, seen: &Listing) -> Result<(), Failure> {
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        if !owners.get(owner).is_some_and(|nodes| nodes.has_marker) {
            return Ok(());
        }
        let unmark = |(name, children): (&Name, &Children)| {
            let first = children.line.0.first();
            let first = first.map(|first| Change::check(name.child(&first.id)));
            let given = give_up_marker(name, children, self.uuid(), 0);
            Op::Multi(first.into_iter().chain([given]).collect())
        };
        let requests: Vec<_> = self.names.iter().zip(&seen.names).map(unmark).collect();
        // Without an answer it is asked again.
        self.ask(&requests)?;
        owners.change(owner, |nodes| nodes.has_marker = false);
        Ok(())
    }
}
