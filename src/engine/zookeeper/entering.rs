//! An owner's nodes: how they are made and found, and what is done when it is let in.

use std::sync::Arc;

use super::client::{Change, Changed, Code, Kind, Op, Reply, Watcher};
use super::line::Line;
use super::locks::{Locks, Name, get, refused};
use super::looks::LeadersClock;
use super::nodes::{self, HELD};
use super::owners::{mark, marked};
use super::question::{Question, Seen};
use super::release::give_up_held;
use super::replies::{Replies, Trouble, misunderstood};
use crate::base::clock::BootInstant;
use crate::base::token::Token;
use crate::engine::Grant;
use crate::engine::line::token_of;

/// The nodes of an owner in line.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// The id of the session that they end with.
    pub(super) session: i64,
    /// One for each name.
    pub(super) nodes: Vec<OwnNode>,
    /// The leader's clock, if the answer that brought them said it.
    pub(super) leaders_clock: Option<LeadersClock>,
    /// Of nodes that were made in one transaction: the last one that the server knew when it answered.
    answered_at: Option<i64>,
    /// Whether it came when nobody had the lock, and hasn't made `held`: so it makes sure of that before it goes on.
    found_free: bool,
    /// Whether the owner before never released the lock.
    is_abandoned: bool,
}

/// A node of an owner in line.
#[derive(Clone, Debug)]
pub(super) struct OwnNode {
    pub(super) path: String,
    /// Which transaction made it, if that is known yet.
    czxid: Option<i64>,
    /// Whether `held` beside it is this owner's.
    is_marked: bool,
}

/// What came of making nodes.
pub(super) enum Entered {
    InLine(Own, Seen),
    /// The names have no nodes yet.
    NoNames,
    /// Nothing was made, because a name has a `held`.
    Held,
}

impl Question<'_> {
    /// Makes a node for each name, and lists them all: one round. An exclusive owner makes `held` of each name in the same
    /// transaction, so that a free lock costs no other; not where one was in the way lately.
    pub(super) fn enter(&self, locks: &Arc<Locks>) -> Result<Entered, Trouble> {
        let is_exclusive = self.request.claim.is_exclusive();
        let marks = is_exclusive && !locks.contended.has(&self.names);
        let requests: Vec<_> = [self.entering(locks, marks)]
            .into_iter()
            .chain(self.listing())
            .collect();
        locks.owners.asks(self.request.owner, self.session.id());
        let answers = match self.session.call(&requests, self.deadline) {
            Ok(answers) => answers,
            Err(unanswered) => {
                if !unanswered.sent {
                    locks.owners.remove(self.request.owner);
                }
                return Err(unanswered.into());
            }
        };
        let (mut replies, answered) = (Replies::new(answers), locks.clock.now());
        let mut own = match self.entered(&mut replies, answered, marks) {
            Ok(own) => own,
            Err(trouble) => {
                locks.owners.remove(self.request.owner);
                return match trouble {
                    Trouble::Refused(Code::NoNode) => Ok(Entered::NoNames),
                    Trouble::Refused(Code::NodeExists) if marks => {
                        locks.contended.insert(&self.names);
                        Ok(Entered::Held)
                    }
                    other => Err(other),
                };
            }
        };
        let paths = own.nodes.iter().map(|node| node.path.clone()).collect();
        locks.owners.has(self.request.owner, paths);
        let seen = self.listed(&mut replies)?;
        own.learn_from(&seen);
        if is_exclusive && !marks && own.is_first(&seen) {
            locks.contended.remove(&self.names);
            own.found_free = true;
        }
        Ok(Entered::InLine(own, seen))
    }

    /// What makes `held`, where there is none.
    fn marking(&self, name: &Name) -> Change {
        Change::Create {
            path: name.child(HELD),
            data: mark(self.request.owner, false),
            kind: Kind::Persistent,
        }
    }

    /// What makes the owner's nodes: of several names in one transaction, so that none of those that want the same ones comes
    /// between.
    fn entering(&self, locks: &Locks, marks: bool) -> Op {
        let node = nodes::unnumbered(self.request.claim.mode, self.uuid());
        let (data, kind) = (locks.card(self.request, None), Kind::EphemeralSequential);
        if let ([name], false) = (&self.names[..], marks) {
            let path = name.child(&node);
            return Op::Create { path, data, kind };
        }
        let create = |name: &Name| Change::Create {
            path: name.child(&node),
            data: data.clone(),
            kind,
        };
        let marked = self.names.iter().filter(|_| marks);
        let marking = marked.map(|name| self.marking(name));
        Op::Multi(self.names.iter().map(create).chain(marking).collect())
    }

    /// The nodes that were made.
    fn entered(
        &self,
        replies: &mut Replies,
        answered: BootInstant,
        is_marked: bool,
    ) -> Result<Own, Trouble> {
        let node = |path, czxid| OwnNode {
            path,
            czxid,
            is_marked,
        };
        let mut own = Own::of(self.session.id());
        match replies.next()?? {
            Reply::Created { path, stat } => {
                own.nodes.push(node(path, Some(stat.czxid)));
                own.leaders_clock = Some(LeadersClock(stat.ctime, answered));
            }
            Reply::Multi(done, zxid) => {
                let created = refused(done)?.into_iter().take(self.names.len());
                own.nodes
                    .extend(created.filter_map(|changed| match changed {
                        Changed::Created(path) => Some(node(path, None)),
                        Changed::Done | Changed::Stat(_) => None,
                    }));
                own.answered_at = Some(zxid);
            }
            _ => return Err(misunderstood()),
        }
        Ok(own)
    }

    /// The nodes of the owner, if this session has made one for each name.
    pub(super) fn own_nodes(&self, lines: &[Line]) -> Result<Option<Own>, Trouble> {
        let found = self.names.iter().zip(lines).map(|(name, line)| {
            let member = &line.members[line.position(self.uuid())?];
            Some(name.child(&member.node))
        });
        let Some(paths) = found.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let requests: Vec<_> = paths.iter().cloned().map(get).collect();
        let mut replies = self.call(&requests)?;
        let mut own = Own::of(self.session.id());
        for path in paths {
            match replies.data()? {
                Some((_, stat)) if stat.ephemeral_owner == own.session => own.nodes.push(OwnNode {
                    path,
                    czxid: Some(stat.czxid),
                    is_marked: false,
                }),
                _ => return Ok(None),
            }
        }
        Ok(Some(own))
    }
}

impl Own {
    fn of(session: i64) -> Self {
        Own {
            session,
            nodes: Vec::new(),
            leaders_clock: None,
            answered_at: None,
            found_free: false,
            is_abandoned: false,
        }
    }

    /// Servers don't answer a transaction of several changes with the nodes' stat, so this takes it from the list that came with
    /// it. Where nobody has come or left since, the last change of the name is the transaction that has made the node. Whoever
    /// comes later has a larger one also if it isn't: nobody stands behind.
    fn learn_from(&mut self, seen: &Seen) {
        let Some(answered_at) = self.answered_at else {
            return;
        };
        let is_last = |(node, line): (&OwnNode, &Line)| {
            line.place(&node.path) == line.members.len().checked_sub(1)
        };
        let mut names = self.nodes.iter().zip(&seen.lines);
        if names.all(is_last) && seen.changed.iter().all(|last| *last == answered_at) {
            let nodes = self.nodes.iter_mut();
            nodes.for_each(|node| node.czxid = Some(answered_at));
        }
    }

    /// Whether it stands before all others, and nobody has `held`.
    fn is_first(&self, seen: &Seen) -> bool {
        let mut names = self.nodes.iter().zip(&seen.lines);
        names.all(|(node, line)| line.place(&node.path) == Some(0) && !line.is_marked)
    }

    /// Lets the owner in, who stands behind nobody. `None`: its nodes are gone.
    pub(super) fn grant(
        mut self,
        locks: &Arc<Locks>,
        question: &Question<'_>,
        seen: &Seen,
    ) -> Result<Option<(Own, Grant)>, Trouble> {
        let request = question.request;
        let mut requests = self.mark(question, seen)?;
        let since = locks.proven(&question.session, question.deadline)?;
        let mut watchers = Vec::new();
        if locks.owners.is_unwatched(request.owner) {
            for node in &self.nodes {
                let watcher = locks.watcher(request.owner);
                watchers.push(watcher.clone());
                requests.push(watched(&node.path, watcher));
            }
        }
        let is_told = self.nodes.iter().all(|node| node.czxid.is_some());
        if !is_told || std::mem::take(&mut self.found_free) {
            if !self.learn(question, &requests)? {
                return Ok(None);
            }
        } else if !requests.is_empty() {
            // Their answers are not waited for: they are carried out before all that this process asks later.
            question.session.send(&requests, question.deadline)?;
        }
        for node in &mut self.nodes {
            node.is_marked = request.claim.is_exclusive();
        }
        let until = since.plus(request.ttl);
        if !locks.owners.let_in(request.owner, until, watchers) {
            return Ok(None);
        }
        let grant = Grant {
            token: self.token(),
            value: seen.value.clone(),
            since,
        };
        Ok(Some((self, grant)))
    }

    /// Asks that, and learns which transaction has made the nodes. False if they are gone.
    fn learn(&mut self, question: &Question<'_>, requests: &[Op]) -> Result<bool, Trouble> {
        let looks = self.nodes.iter().map(|node| get(node.path.clone()));
        let all: Vec<_> = requests.iter().cloned().chain(looks).collect();
        let mut replies = question.call(&all)?;
        for _ in requests {
            // What isn't there is found by the looks.
            let _ = replies.next()?;
        }
        for node in &mut self.nodes {
            match replies.data()? {
                Some((_, stat)) => node.czxid = Some(stat.czxid),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Finds out whether the owner before has left the lock without releasing it. Gives what still has to be asked to say
    /// that this one was let in.
    fn mark(&mut self, question: &Question<'_>, seen: &Seen) -> Result<Vec<Op>, Trouble> {
        let is_exclusive = question.request.claim.is_exclusive();
        let mut requests = Vec::new();
        let names = question.names.iter().zip(&seen.lines).zip(&self.nodes);
        for ((name, line), _) in names.filter(|(_, node)| !node.is_marked) {
            let create = || Op::Create {
                path: name.child(HELD),
                data: mark(question.request.owner, false),
                kind: Kind::Persistent,
            };
            let held = if line.is_marked {
                question.call(&[get(name.child(HELD))])?.data()?
            } else {
                None
            };
            let Some((held, _)) = held else {
                if is_exclusive {
                    requests.push(create());
                }
                continue;
            };
            let (uuid, was_told) = marked(&held);
            let is_own = uuid == question.uuid();
            let is_abandoned = if is_own { was_told } else { !line.has(&uuid) };
            self.is_abandoned |= is_abandoned;
            if is_exclusive && !is_own {
                let set = Op::Set {
                    path: name.child(HELD),
                    data: mark(question.request.owner, is_abandoned),
                    version: None,
                };
                // It may be deleted at the same time by one that stands behind: then it is made.
                question.call(&[set])?;
                requests.push(create());
            }
        }
        Ok(requests)
    }

    /// What gives `held` of all names, made by an owner that stands behind others, to those, if they are still there.
    pub(super) fn unmark(&self, question: &Question<'_>, seen: &Seen) -> Vec<Op> {
        let names = question.names.iter().zip(&seen.lines).zip(&self.nodes);
        let unmark = |((name, line), _): ((&Name, &Line), &OwnNode)| {
            let first = line.members.first().map(|first| Change::Check {
                path: name.child(&first.node),
                version: None,
            });
            let given = give_up_held(name, line, question.uuid(), 0);
            Op::Multi(first.into_iter().chain([given]).collect())
        };
        names
            .filter(|(_, node)| node.is_marked)
            .map(unmark)
            .collect()
    }

    /// The same without `held`.
    pub(super) fn unmarked(mut self) -> Self {
        for node in &mut self.nodes {
            node.is_marked = false;
        }
        self
    }

    /// Whether some `held` is this owner's.
    pub(super) fn is_marked(&self) -> bool {
        self.nodes.iter().any(|node| node.is_marked)
    }

    fn token(&self) -> Token {
        let czxid = self.nodes.iter().filter_map(|node| node.czxid).max();
        let revision = czxid.and_then(|czxid| czxid.try_into().ok()).unwrap_or(0);
        token_of(revision, self.is_abandoned)
    }
}

/// What has a node watched, if it is there.
pub(super) fn watched(path: &str, watcher: Watcher) -> Op {
    Op::Get {
        path: path.to_owned(),
        watch: Some(watcher),
    }
}
