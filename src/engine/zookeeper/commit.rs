//! What becomes of an owner's nodes: one transaction for each change, which is refused where its nodes aren't there
//! any more.

use std::sync::Arc;

use super::client::{Change, Code, Failure, Op, Refused, Session, Watcher};
use super::locks::{Locks, RETRY};
use super::nodes::{self, MARKER, Name, VALUE, kept_content, marker};
use super::{ZooKeeperStore, call::Call, leases::Lease};
use crate::base::{Deadline, Mode, Owner, Result as PublicResult};
use crate::engine::line::{
    Commit, Committed, Entry, Line, LineLeases, OwnSnapshot, Write, uuid_of,
};
use crate::engine::{Outcome, Request};

/// A change, and what it is for.
struct Part {
    does: Does,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It takes the owner's node, or looks whether it is there.
    Own,
    /// It writes, whether something is there or not.
    Put,
    /// It deletes, if something is there.
    Unmark,
    /// It makes a kept place, unless an earlier try has.
    Keep,
}

impl LineLeases for ZooKeeperStore {
    fn prove(&self, request: Request<'_>, deadline: &Deadline) -> PublicResult<Outcome> {
        let lease = self.lease(request, deadline);
        self.0.told(Some(request.key()), lease.renew())
    }

    fn own(&self, request: Request<'_>, deadline: &Deadline) -> PublicResult<Vec<OwnSnapshot>> {
        let lease = self.lease(request, deadline);
        let own = || match lease.are_there(true)? {
            true => Ok(lease.known()),
            false => lease.find(),
        };
        self.0.told(Some(request.key()), own())
    }

    fn commit(
        &self,
        request: Request<'_>,
        commit: &Commit<'_>,
        deadline: &Deadline,
    ) -> PublicResult<Committed> {
        let lease = self.lease(request, deadline);
        let committed = entries_of(lease, commit).and_then(|entries| match entries {
            Ok(entries) => Committing::new(lease, commit, &entries).run(),
            Err(found) => Ok(Committed::Refused {
                found,
                is_repeated: false,
            }),
        });
        self.0.told(Some(request.key()), committed)
    }

    fn lines(&self, request: Request<'_>, deadline: &Deadline) -> PublicResult<Vec<Line>> {
        let seen = self.0.again(deadline, || {
            Call::new(&self.0, request, deadline)?.look_at_own()
        });
        let lines = seen.map(|seen| seen.names.into_iter().map(|children| children.line));
        self.0
            .told(Some(request.key()), lines.map(Iterator::collect))
    }

    fn resume(
        &self,
        request: Request<'_>,
        entries: &[Entry],
        deadline: &Deadline,
    ) -> PublicResult<bool> {
        let resume = || resume(&self.0, request, entries, deadline);
        self.0
            .told(Some(request.key()), self.0.again(deadline, resume))
    }

    fn give_away(&self, request: Request<'_>) {
        let until = self.0.clock.now().plus(request.ttl);
        self.0.owners.given_away(request.owner, until);
    }
}

/// One commit on its way.
struct Committing<'a> {
    lease: Lease<'a>,
    commit: &'a Commit<'a>,
    /// Of which names it is, in their order.
    names: Vec<usize>,
    parts: Vec<Part>,
    /// The nodes that it makes for the owner.
    made: Vec<String>,
}

impl<'a> Committing<'a> {
    fn new(lease: Lease<'a>, commit: &'a Commit<'a>, entries: &[(usize, Entry)]) -> Self {
        let Lease { locks, request, .. } = lease;
        let mut committing = Committing {
            lease,
            commit,
            names: entries.iter().map(|(name, _)| *name).collect(),
            parts: Vec::new(),
            made: Vec::new(),
        };
        let names = locks.names(request);
        if let (Some(value), Some((first, _))) = (commit.value, entries.first()) {
            let path = names[*first].child(VALUE);
            committing.push(Does::Put, Change::set(path, value.to_vec()));
        }
        for (name, entry) in entries {
            committing.change(&names[*name], entry);
        }
        if commit.entries != Write::Nothing {
            // From now on nobody is to be told that they are gone.
            locks
                .owners
                .unwatch(committing.from().unwrap_or(request.owner));
        }
        committing
    }

    fn push(&mut self, does: Does, change: Change) {
        self.parts.push(Part { does, change });
    }

    fn change(&mut self, name: &Name, entry: &Entry) {
        let (path, held) = (name.child(&entry.id), name.child(MARKER));
        match self.commit.entries {
            Write::Nothing => {
                return self.push(Does::Own, Change::check(path));
            }
            Write::Leave => {}
            Write::Keep(time) => {
                let kept = name.child(&nodes::kept(&entry.id));
                self.push(Does::Keep, Change::create(kept, kept_content(time)));
            }
            Write::Become { mode, token } => {
                let own = nodes::replaced(&entry.id, mode, uuid_of(self.lease.request.owner));
                let path = name.child(&own);
                self.made.push(path.clone());
                let data = self.lease.locks.node_data(self.lease.request, Some(token));
                self.push(Does::Own, Change::create_own(path, data));
                if mode == Mode::Exclusive {
                    let marker = marker(self.lease.request.owner, false);
                    self.push(Does::Put, Change::set(held.clone(), marker));
                }
            }
        }
        if self.commit.is_clean && entry.mode == Mode::Exclusive {
            self.push(Does::Unmark, Change::delete(held));
        }
        // The last: whoever waits for it finds all of the others done.
        self.push(Does::Own, Change::delete(path));
    }

    /// Whose lease it is so far, if it is to be the owner's from now on.
    fn from(&self) -> Option<&'a Owner> {
        let (_, entry) = self.commit.found?.first()?;
        entry
            .owner()
            .filter(|_| !entry.is_of(self.lease.request.owner))
    }

    fn run(&mut self) -> Result<Committed, Failure> {
        let mut is_repeated = false;
        loop {
            let session = self.lease.locks.session(self.lease.deadline)?;
            let watchers = self.ask_for(&session);
            let changes = self.parts.iter().map(|part| part.change.clone()).collect();
            let looks = self.made.iter().zip(watchers.iter().cloned());
            let looks = looks.map(|(path, watcher)| Op::watch(path, watcher));
            let requests: Vec<_> = [Op::Multi(changes)].into_iter().chain(looks).collect();
            match session.call(&requests, self.lease.deadline) {
                Ok(mut replies) => match replies.multi()? {
                    Ok(_) => return self.committed(&session, watchers, is_repeated),
                    Err(refused) if self.goes_on_without(refused)? => {}
                    Err(_) => {
                        let found = self.lease.find()?;
                        let names = self.names.iter().map(|name| found[*name].clone());
                        let found = names.collect();
                        return Ok(Committed::Refused { found, is_repeated });
                    }
                },
                Err(lost)
                    if matches!(lost.error, Failure::Unreachable(_))
                        && !self.lease.deadline.is_over() =>
                {
                    is_repeated |= lost.sent;
                    self.lease.deadline.sleep(RETRY);
                }
                Err(lost) => return Err(lost.into()),
            }
        }
    }

    /// Knows what the owner may have from now on, and watches that.
    fn ask_for(&self, session: &Session) -> Vec<Watcher> {
        if self.made.is_empty() {
            return Vec::new();
        }
        let (owners, owner) = (&self.lease.locks.owners, self.lease.request.owner);
        let until = self.lease.locks.clock.now().plus(self.lease.request.ttl);
        owners.asks(owner, session.id());
        owners.may_have(owner, &self.made, until);
        self.made
            .iter()
            .map(|_| self.lease.locks.watcher(owner))
            .collect()
    }

    /// Goes on without the change that was refused, or with another in its place. False if it was the owner's node
    /// that is gone, or the name itself, or an earlier try has done it.
    fn goes_on_without(&mut self, refused: Refused) -> Result<bool, Failure> {
        let Refused { change, code } = refused;
        let part = self
            .parts
            .get_mut(change)
            .ok_or_else(Failure::misunderstood)?;
        let other = match (part.does, &part.change, code) {
            (Does::Put, Change::Set { path, data, .. }, Code::NO_NODE) => {
                Change::create(path.clone(), data.clone())
            }
            (Does::Put, Change::Create { path, data, .. }, Code::NODE_EXISTS) => {
                Change::set(path.clone(), data.clone())
            }
            (Does::Unmark, _, Code::NO_NODE) | (Does::Keep, _, Code::NODE_EXISTS) => {
                self.parts.remove(change);
                return Ok(true);
            }
            (_, _, Code::NO_NODE | Code::NODE_EXISTS) => return Ok(false),
            _ => return Err(code.into()),
        };
        part.change = other;
        Ok(true)
    }

    fn committed(
        &mut self,
        session: &Session,
        watchers: Vec<Watcher>,
        is_repeated: bool,
    ) -> Result<Committed, Failure> {
        if self.made.is_empty() {
            let since = None;
            return Ok(Committed::Done { is_repeated, since });
        }
        let (owners, owner) = (&self.lease.locks.owners, self.lease.request.owner);
        owners.has(owner, std::mem::take(&mut self.made));
        if let Some(from) = self.from() {
            owners.remove(from);
        }
        let since = self.lease.locks.proven(session, self.lease.deadline)?;
        let is_let_in = owners.let_in(owner, since.plus(self.lease.request.ttl), watchers);
        let since = (is_let_in && self.from().is_some()).then_some(since);
        Ok(Committed::Done { is_repeated, since })
    }
}

/// Entries of an owner, with the place of their name in the request.
type Entries = Vec<(usize, Entry)>;

/// The entries that a commit is about, or what the owner has left, if that isn't all.
fn entries_of(
    lease: Lease<'_>,
    commit: &Commit<'_>,
) -> Result<Result<Entries, Vec<OwnSnapshot>>, Failure> {
    if let Some(found) = commit.found {
        return Ok(Ok(found.to_vec()));
    }
    let nodes = lease.locks.owners.get(lease.request.owner);
    let found = match nodes.is_none_or(|nodes| !nodes.has_inflight) {
        true => lease.known(),
        false => lease.find()?,
    };
    let own = found.iter().enumerate();
    let own = own.map(|(name, found)| Some((name, found.own.clone()?)));
    Ok(own.collect::<Option<_>>().ok_or(found))
}

/// Nodes that an earlier try has made are the owner's from now on, and end with this session: with another they would
/// at any time.
fn resume(
    locks: &Arc<Locks>,
    request: Request<'_>,
    entries: &[Entry],
    deadline: &Deadline,
) -> Result<bool, Failure> {
    let call = Call::new(locks, request, deadline)?;
    let id = call.session.id();
    let own = call.names.iter().zip(entries);
    let own: Vec<_> = own
        .map(|(name, entry)| (name.child(&entry.id), entry))
        .collect();
    let paths: Vec<_> = own.iter().map(|(path, _)| path.clone()).collect();
    if locks.deletes(&paths) {
        return Ok(false);
    }
    locks.owners.asks(request.owner, id);
    let until = locks.clock.now().plus(request.ttl);
    locks.owners.may_have(request.owner, &paths, until);
    let other = own.iter().filter(|(_, entry)| entry.session != Some(id));
    let anew = other.flat_map(|(path, entry)| {
        let create = Change::create_own(path.clone(), locks.node_data(request, entry.token));
        [Change::delete(path.clone()), create]
    });
    let anew: Vec<_> = anew.collect();
    if !anew.is_empty() {
        match call.ask(&[Op::Multi(anew)])?.multi()? {
            Ok(_) => {}
            Err(refused) if matches!(refused.code, Code::NO_NODE | Code::NODE_EXISTS) => {
                return Ok(false);
            }
            Err(refused) => return Err(refused.code.into()),
        }
    }
    locks.owners.has(request.owner, paths);
    let since = locks.proven(&call.session, &call.deadline)?;
    let until = since.plus(request.ttl);
    Ok(locks.owners.let_in(request.owner, until, Vec::new()))
}
