//! Leases that go on: renewed, looked at, adopted, and turned into one that reads.

use std::sync::Arc;

use super::client::{Change, Code, Kind, Op, Session};
use super::entering::watched;
use super::line::Line;
use super::locks::{Locks, Name, RETRY, children, get, sync};
use super::nodes::{self, HELD, VALUE};
use super::owners::mark;
use super::release::{create, delete, find_broken, is_lost, other_store, set};
use super::replies::{Replies, Trouble};
use crate::base::claim::Mode;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::Error;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::line::passed_on;
use crate::engine::{Grant, Outcome, Request};

/// Proves that the session lives, and that the owner has its nodes. While the session beats, and the nodes are watched, both are
/// known: a server answers a beat behind all that it has to tell of what was done before. Otherwise the leader is asked, and
/// the nodes are looked at.
pub(super) fn renew(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<Outcome, Trouble> {
    let owners = &locks.owners;
    if owners.get(request.owner).is_none() {
        return gone(locks, request, deadline);
    }
    let session = locks.session(deadline)?;
    // Read first: what the last beat's answer came behind, the watchers have been told.
    let lately = session.proven_lately();
    let is_watched = || owners.is_watched(request.owner, session.id());
    let (since, found) = match lately.filter(|_| is_watched()) {
        Some(since) => (since, Outcome::DONE),
        None => {
            let since = session.prove(deadline)?;
            (since, look(locks, request, false, deadline)?)
        }
    };
    match found {
        Outcome::Done(_)
            if owners.renewed(request.owner, session.id(), since.plus(request.ttl)) =>
        {
            Ok(Outcome::since(since))
        }
        Outcome::Done(_) => gone(locks, request, deadline),
        other => Ok(other),
    }
}

/// Looks at the owner's nodes as the leader has them.
pub(super) fn is_owner(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<Outcome, Trouble> {
    look(locks, request, true, deadline)
}

fn look(
    locks: &Arc<Locks>,
    request: Request<'_>,
    is_current: bool,
    deadline: &Deadline,
) -> Result<Outcome, Trouble> {
    let Some(nodes) = locks.owners.get(request.owner) else {
        return gone(locks, request, deadline);
    };
    let is_unwatched = locks.owners.is_unwatched(request.owner);
    let mut watchers = Vec::new();
    let mut requests: Vec<_> = nodes
        .paths
        .iter()
        .map(|path| {
            if is_unwatched {
                let watcher = locks.watcher(request.owner);
                watchers.push(watcher.clone());
                watched(path, watcher)
            } else {
                get(path.clone())
            }
        })
        .collect();
    if is_current && let Some(path) = nodes.paths.first() {
        requests.insert(0, sync(path));
    }
    let mut replies = locks.call_again(&requests, deadline)?;
    if is_current {
        replies.done()?;
    }
    for _ in &nodes.paths {
        if replies.data()?.is_none() {
            return gone(locks, request, deadline);
        }
    }
    locks.owners.watched(request.owner, watchers);
    Ok(Outcome::DONE)
}

/// Why the owner has nothing any more.
fn gone(locks: &Arc<Locks>, request: Request<'_>, deadline: &Deadline) -> Result<Outcome, Trouble> {
    let is_broken = find_broken(locks, request, deadline)?;
    Ok(if is_broken {
        Outcome::BROKEN
    } else {
        Outcome::NOT_OWNER
    })
}

/// Puts nodes of another owner, or another way to hold, in the place of nodes in line: in one transaction.
struct Replacing<'a> {
    locks: &'a Arc<Locks>,
    request: Request<'a>,
    /// Whose nodes are replaced.
    from: &'a str,
    mode: Mode,
    token: Token,
    value: Option<&'a [u8]>,
    deadline: &'a Deadline,
}

/// What came of one try.
enum Replaced {
    /// The new nodes.
    By(Vec<String>),
    /// The owner has none any more.
    Gone,
    /// Something has changed meanwhile.
    Again,
}

impl Replacing<'_> {
    /// False if the other owner hasn't all of its nodes any more.
    fn run(&self) -> Result<bool, Trouble> {
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        loop {
            let session = self.locks.session(self.deadline)?;
            owners.asks(owner, session.id());
            match self.replace(&session) {
                Ok(Replaced::By(paths)) => {
                    owners.has(owner, paths);
                    return Ok(true);
                }
                Ok(Replaced::Gone) => return Ok(false),
                Ok(Replaced::Again) => {}
                Err(Trouble::Failure(failure)) if is_lost(&failure) && !self.deadline.is_over() => {
                    self.deadline.sleep(RETRY);
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    fn replace(&self, session: &Session) -> Result<Replaced, Trouble> {
        let names = self.locks.names(self.request);
        let lists = names.iter().map(|name| children(&name.path));
        let requests: Vec<_> = [sync(&names[0].path)].into_iter().chain(lists).collect();
        let mut replies = Replies::new(session.call(&requests, self.deadline)?);
        replies.done()?;
        let (mut changes, mut paths) = (Vec::new(), Vec::new());
        for name in &names {
            let line = replies.line()?;
            let path = if let Some(path) = self.own_node(name, &line) {
                if self.locks.leftovers.has(&path) {
                    return Ok(Replaced::Again);
                }
                changes.extend(self.made_anew(session, &path)?);
                path
            } else if let Some(path) = self.of_name(name, &line, &mut changes) {
                path
            } else {
                return Ok(Replaced::Gone);
            };
            paths.push(path);
        }
        if changes.is_empty() {
            return Ok(Replaced::By(paths));
        }
        let until = self.locks.clock.now().plus(self.request.ttl);
        self.locks
            .owners
            .may_have(self.request.owner, &paths, until);
        let answers = session.call(&[Op::Multi(changes)], self.deadline)?;
        match Replies::new(answers).multi()? {
            Ok(_) => Ok(Replaced::By(paths)),
            Err(refused) if matches!(refused.code, Code::NoNode | Code::NodeExists) => {
                Ok(Replaced::Again)
            }
            Err(refused) => Err(refused.code.into()),
        }
    }

    /// The new node, if an earlier try has made it.
    fn own_node(&self, name: &Name, line: &Line) -> Option<String> {
        let place = line.position(nodes::uuid_of(self.request.owner))?;
        let member = line.members.get(place)?;
        (member.mode == self.mode).then(|| name.child(&member.node))
    }

    /// What makes a node that is there one of this session: with another session it would end at any time.
    fn made_anew(&self, session: &Session, path: &str) -> Result<Vec<Change>, Trouble> {
        let found = session.call(&[get(path.to_owned())], self.deadline)?;
        let found = Replies::new(found).data()?;
        if found.is_some_and(|(_, stat)| stat.ephemeral_owner == session.id()) {
            return Ok(Vec::new());
        }
        // If it is gone meanwhile this is refused, and all is looked at again.
        Ok(vec![delete(path.to_owned()), self.create(path)])
    }

    fn create(&self, path: &str) -> Change {
        Change::Create {
            path: path.to_owned(),
            data: self.locks.card(self.request, Some(self.token.number)),
            kind: Kind::Ephemeral,
        }
    }

    /// The path of the new node, and what makes it.
    fn of_name(&self, name: &Name, line: &Line, changes: &mut Vec<Change>) -> Option<String> {
        let uuid = nodes::uuid_of(self.request.owner);
        let old = &line.members[line.position(self.from)?];
        let path = name.child(&old.replaced_by(self.mode, uuid));
        changes.push(self.create(&path));
        if let Some(value) = self.value {
            let store = set(name.child(VALUE), value);
            changes.push(if line.has_value {
                store
            } else {
                other_store(&store)
            });
        }
        let held = name.child(HELD);
        match (self.mode, line.is_marked) {
            (Mode::Exclusive, true) => changes.push(set(held, &mark(self.request.owner, false))),
            (Mode::Exclusive, false) => {
                changes.push(create(held, mark(self.request.owner, false)));
            }
            (_, true) if old.mode == Mode::Exclusive => changes.push(delete(held)),
            _ => {}
        }
        // The last: whoever waits for it finds the new one.
        changes.push(delete(name.child(&old.node)));
        Some(path)
    }
}

/// Makes another owner's lease that of the request.
pub(super) fn adopt(
    locks: &Arc<Locks>,
    request: Request<'_>,
    from: &Owner,
    last_used: u64,
    deadline: &Deadline,
) -> Result<Option<Grant>, Trouble> {
    let replacing = Replacing {
        locks,
        request,
        from: nodes::uuid_of(from),
        mode: request.claim.mode,
        token: token_above(locks, request, last_used)?,
        value: None,
        deadline,
    };
    // Its node is about to be deleted, if it is an owner of this process.
    locks.owners.unwatch(from);
    if !replacing.run()? {
        locks.owners.remove(request.owner);
        return Ok(None);
    }
    locks.owners.remove(from);
    let Some(since) = begin(locks, request, deadline)? else {
        return Ok(None);
    };
    let value = match request.claim.valued {
        true => Some(super::values::load(locks, request.key(), deadline)?),
        false => None,
    };
    Ok(Some(Grant {
        token: replacing.token,
        value,
        since,
    }))
}

/// The lease counts from then on. `None` if it was lost meanwhile, as with the session that has made its nodes.
fn begin(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<Option<BootInstant>, Trouble> {
    let session = locks.session(deadline)?;
    let since = locks.proven(&session, deadline)?;
    let until = since.plus(request.ttl);
    let nodes = locks.owners.get(request.owner);
    let is_let_in = nodes.is_some_and(|nodes| nodes.session == session.id())
        && locks.owners.let_in(request.owner, until, Vec::new());
    Ok(is_let_in.then_some(since))
}

/// Makes an exclusive lease one that reads. Its node is made by the session whose lease it is: that proves nothing of the
/// session's time.
pub(super) fn downgrade(
    locks: &Arc<Locks>,
    request: Request<'_>,
    last_used: u64,
    value: Option<&[u8]>,
    deadline: &Deadline,
) -> Result<Outcome, Trouble> {
    if locks.owners.get(request.owner).is_none() {
        return Ok(Outcome::NOT_OWNER);
    }
    let replacing = Replacing {
        locks,
        request,
        from: nodes::uuid_of(request.owner),
        mode: Mode::Shared,
        token: token_above(locks, request, last_used)?,
        value,
        deadline,
    };
    // Its node is about to be deleted.
    locks.owners.unwatch(request.owner);
    if !replacing.run()? {
        return Ok(Outcome::NOT_OWNER);
    }
    let grant = begin(locks, request, deadline)?.map(|since| Grant {
        token: replacing.token,
        value: None,
        since,
    });
    Ok(grant.into())
}

fn token_above(locks: &Locks, request: Request<'_>, last_used: u64) -> Result<Token, Trouble> {
    let text = "the lease was passed on too often: release it, and take the lock anew";
    passed_on(last_used).ok_or_else(|| {
        let (name, place) = (Some(request.key().name()), locks.place());
        Trouble::Error(Error::engine(
            name,
            place,
            "how often it was passed on",
            text,
        ))
    })
}
