//! An owner's nodes: how they are made and found, and what is done when it is let in.

use std::sync::Arc;

use super::client::{Change, Changed, Code, Kind, Op, Reply, Watcher};
use super::line::Line;
use super::locks::{Locks, Name, get, refused};
use super::nodes::{self, HELD};
use super::owners::{mark, marked};
use super::question::{Question, Seen};
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
    /// Whether the owner before never released the lock.
    is_abandoned: bool,
}

/// A node of an owner in line.
#[derive(Clone, Debug)]
pub(super) struct OwnNode {
    pub(super) path: String,
    /// Which transaction made it, if that is known yet.
    czxid: Option<i64>,
    /// The leader's clock, in milliseconds since 1970, at this time or before.
    pub(super) leaders_clock: Option<(i64, BootInstant)>,
    /// Whether `held` beside it is this owner's.
    is_marked: bool,
}

/// What came of making nodes.
pub(super) enum Entered {
    InLine(Own, Seen),
    /// The names have no nodes yet.
    NoNames,
}

impl Question<'_> {
    /// Makes a node for each name, and `held` where there is none, and lists them all: one round.
    pub(super) fn enter(&self, locks: &Arc<Locks>) -> Result<Entered, Trouble> {
        let mut requests = vec![self.entering(locks)];
        let marks = if self.request.claim.is_exclusive() {
            self.names.len()
        } else {
            0
        };
        let marked = self.names.iter().take(marks);
        requests.extend(marked.map(|name| self.marking(name)));
        requests.extend(self.listing());
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
        let nodes = self.entered(&mut replies, answered);
        let made = self
            .names
            .iter()
            .take(marks)
            .map(|_| Ok(replies.next()?.is_ok()));
        let made = made.collect::<Result<Vec<_>, Trouble>>()?;
        let Some(mut nodes) = self.or_nothing(locks, nodes, &made)? else {
            return Ok(Entered::NoNames);
        };
        for (node, is_made) in nodes.iter_mut().zip(&made) {
            node.is_marked = *is_made;
        }
        let paths = nodes.iter().map(|node| node.path.clone()).collect();
        locks.owners.has(self.request.owner, paths);
        let own = Own {
            session: self.session.id(),
            nodes,
            is_abandoned: false,
        };
        Ok(Entered::InLine(own, self.listed(&mut replies)?))
    }

    /// What makes `held`, where there is none.
    fn marking(&self, name: &Name) -> Op {
        Op::Create {
            path: name.child(HELD),
            data: mark(self.request.owner, false),
            kind: Kind::Persistent,
        }
    }

    /// What makes the owner's nodes: of several names in one transaction, so that none of those that want the same ones comes
    /// between.
    fn entering(&self, locks: &Locks) -> Op {
        let node = nodes::unnumbered(self.request.claim.mode, self.uuid());
        let (data, kind) = (locks.card(self.request, None), Kind::EphemeralSequential);
        if let [name] = &self.names[..] {
            let path = name.child(&node);
            return Op::Create { path, data, kind };
        }
        let create = |name: &Name| Change::Create {
            path: name.child(&node),
            data: data.clone(),
            kind,
        };
        Op::Multi(self.names.iter().map(create).collect())
    }

    /// The nodes that were made.
    fn entered(
        &self,
        replies: &mut Replies,
        answered: BootInstant,
    ) -> Result<Vec<OwnNode>, Trouble> {
        let node = |path: String| OwnNode {
            path,
            czxid: None,
            leaders_clock: None,
            is_marked: false,
        };
        match replies.next()?? {
            Reply::Created { path, stat } => Ok(vec![OwnNode {
                path,
                czxid: Some(stat.czxid),
                leaders_clock: Some((stat.ctime, answered)),
                is_marked: false,
            }]),
            Reply::Multi(done) => {
                let made = refused(done)?
                    .into_iter()
                    .filter_map(|changed| match changed {
                        Changed::Created(path) => Some(node(path)),
                        Changed::Done | Changed::Stat(_) => None,
                    });
                Ok(made.collect())
            }
            _ => Err(misunderstood()),
        }
    }

    /// Without nodes the owner has no `held` either. `None`: its names have no nodes yet.
    fn or_nothing(
        &self,
        locks: &Arc<Locks>,
        nodes: Result<Vec<OwnNode>, Trouble>,
        has_made_held: &[bool],
    ) -> Result<Option<Vec<OwnNode>>, Trouble> {
        let trouble = match nodes {
            Ok(nodes) => return Ok(Some(nodes)),
            Err(trouble) => trouble,
        };
        let made = self
            .names
            .iter()
            .zip(has_made_held)
            .filter(|(_, made)| **made);
        let delete = made.map(|(name, _)| Op::Delete {
            path: name.child(HELD),
            version: Some(0),
        });
        let requests: Vec<_> = delete.collect();
        if !requests.is_empty() {
            self.call(&requests)?;
        }
        locks.owners.remove(self.request.owner);
        match trouble {
            Trouble::Refused(Code::NoNode) => Ok(None),
            other => Err(other),
        }
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
        let mut own = Own {
            session: self.session.id(),
            nodes: Vec::new(),
            is_abandoned: false,
        };
        for path in paths {
            match replies.data()? {
                Some((_, stat)) if stat.ephemeral_owner == own.session => own.nodes.push(OwnNode {
                    path,
                    czxid: Some(stat.czxid),
                    leaders_clock: None,
                    is_marked: false,
                }),
                _ => return Ok(None),
            }
        }
        Ok(Some(own))
    }
}

impl Own {
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
        if self.nodes.iter().any(|node| node.czxid.is_none()) {
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
            let create = || question.marking(name);
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

    /// What gives `held` of all names, made by an owner that stands behind others, to those.
    pub(super) fn unmark(&self, question: &Question<'_>, seen: &Seen) -> Vec<Op> {
        let names = question.names.iter().zip(&seen.lines).zip(&self.nodes);
        names
            .filter(|(_, node)| node.is_marked)
            .map(|((name, line), _)| {
                let (path, version) = (name.child(HELD), Some(0));
                let first = line.first_exclusive();
                match first.filter(|first| *first != question.uuid()) {
                    Some(first) => Op::Set {
                        path,
                        data: first.as_bytes().to_vec(),
                        version,
                    },
                    None => Op::Delete { path, version },
                }
            })
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
