//! Leases are proven, and looked at; and an owner leaves the line that doesn't know whether it has the lock.

use std::sync::Arc;

use super::client::{Change, Code, Failure, Op, Refused};
use super::nodes::{self, Children, MARKER, Name, read_marker};
use super::{call::Call, locks::Locks};
use crate::base::Deadline;
use crate::engine::line::{Entry, OwnSnapshot, uuid_of};
use crate::engine::{Outcome, Request};

/// The lease of an owner, for one call.
#[derive(Clone, Copy)]
pub(super) struct Lease<'a> {
    pub(super) locks: &'a Arc<Locks>,
    pub(super) request: Request<'a>,
    pub(super) deadline: &'a Deadline,
}

impl Lease<'_> {
    /// Proves that the session lives, and that the owner has its nodes. While the session beats, and the nodes are
    /// watched, both are known: a server answers a beat behind all that it has to tell of what was done before.
    /// Otherwise the leader is asked, and the nodes are looked at.
    pub(super) fn renew(&self) -> Result<Outcome, Failure> {
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        if owners.get(owner).is_some() {
            let session = self.locks.session(self.deadline)?;
            // Read first: what the last beat's answer came behind, the watchers have been told.
            let lately = session.proven_lately();
            let is_watched = || owners.is_watched(owner, session.id());
            let (since, are_there) = match lately.filter(|_| is_watched()) {
                Some(since) => (since, true),
                None => {
                    let since = session.prove(self.deadline)?;
                    (since, self.are_there(false)?)
                }
            };
            if are_there && owners.renewed(owner, session.id(), since.plus(self.request.ttl)) {
                return Ok(Outcome::since(since));
            }
        }
        Ok(match self.is_broken()? {
            true => Outcome::BROKEN,
            false => Outcome::NOT_OWNER,
        })
    }

    /// Whether the owner has its nodes, as this server has them, or as the leader does. They are watched, if nothing
    /// does so.
    pub(super) fn are_there(&self, is_current: bool) -> Result<bool, Failure> {
        let Some(nodes) = self.locks.owners.get(self.request.owner) else {
            return Ok(false);
        };
        let Some(first) = nodes.paths.first() else {
            return Ok(false);
        };
        let watchers = self.locks.watchers(self.request.owner, nodes.paths.len());
        let look = |(at, path): (usize, &String)| match watchers.get(at) {
            Some(watcher) => Op::watch(path, watcher.clone()),
            None => Op::get(path.clone()),
        };
        let mut requests: Vec<_> = nodes.paths.iter().enumerate().map(look).collect();
        if is_current {
            requests.insert(0, Op::sync(first));
        }
        let mut replies = self.locks.call_again(&requests, self.deadline)?;
        if is_current {
            replies.done()?;
        }
        for _ in &nodes.paths {
            if replies.data()?.is_none() {
                return Ok(false);
            }
        }
        self.locks.owners.watched(self.request.owner, watchers);
        Ok(true)
    }

    /// Whether somebody broke one of the owner's locks.
    fn is_broken(&self) -> Result<bool, Failure> {
        if self.locks.owners.is_broken(self.request.owner) {
            return Ok(true);
        }
        let node = nodes::broken(uuid_of(self.request.owner));
        let names = self.locks.names(self.request).into_iter();
        let looks: Vec<_> = names.map(|name| Op::exists(name.child(&node))).collect();
        let mut replies = self.locks.call_again(&looks, self.deadline)?;
        let mut is_broken = false;
        for _ in &looks {
            is_broken |= replies.exists()?;
        }
        if is_broken {
            self.locks.heard_of_break(self.request);
        }
        Ok(is_broken)
    }

    /// Gives up all nodes of the owner, whichever those are.
    pub(super) fn leave(&self) -> Result<(), Failure> {
        let Some(nodes) = self.locks.owners.get(self.request.owner) else {
            return Ok(());
        };
        self.locks.owners.unwatch(self.request.owner);
        if nodes.has_inflight || self.request.claim.is_exclusive() {
            let mut names = self.locks.names(self.request).into_iter();
            return names.try_for_each(|name| self.leave_with_marker(&name));
        }
        let requests: Vec<_> = nodes.paths.into_iter().map(Op::delete).collect();
        self.locks.call_again(&requests, self.deadline).map(drop)
    }

    /// Its nodes are looked for. With each goes its `held`, to the one that is first, if there is one. One that
    /// stands behind may take it for the holder at any moment, and make `held` its own: so its node goes only while
    /// `held` is as it was seen.
    fn leave_with_marker(&self, name: &Name) -> Result<(), Failure> {
        while let Some([first, own]) = self.leaving(name)? {
            let all = first.into_iter().chain(own.iter().cloned()).collect();
            let mut done = self.locks.change_again(all, self.deadline)?;
            if done.as_ref().is_err_and(|refused| !has_changed(refused)) {
                // Without room for a node, or the right to make it.
                done = self.locks.change_again(own, self.deadline)?;
            }
            if !done.is_err_and(|refused| has_changed(&refused)) {
                break;
            }
        }
        Ok(())
    }

    /// What deletes the owner's nodes, if there are any, and what goes before that.
    fn leaving(&self, name: &Name) -> Result<Option<[Vec<Change>; 2]>, Failure> {
        let (owner, held) = (self.request.owner, name.child(MARKER));
        let requests = [
            Op::sync(&name.path),
            Op::children(&name.path),
            Op::get(held.clone()),
        ];
        let mut replies = self.locks.call_again(&requests, self.deadline)?;
        replies.done()?;
        let (children, found) = (Children::of(replies.children()?), replies.data()?);
        let own = children.line.0.iter().filter(|entry| entry.is_of(owner));
        let own: Vec<_> = own
            .map(|entry| Change::delete(name.child(&entry.id)))
            .collect();
        if own.is_empty() {
            return Ok(None);
        }
        let uuid = uuid_of(owner);
        let first = match found {
            Some((data, stat)) if read_marker(&data) == (uuid.to_owned(), false) => {
                vec![give_up_marker(name, &children, uuid, stat.version)]
            }
            Some((_, stat)) => vec![Change::Check {
                path: held,
                version: Some(stat.version),
            }],
            // Refused if it is there by now.
            None => vec![
                Change::create(held.clone(), Vec::new()),
                Change::delete(held),
            ],
        };
        Ok(Some([first, own]))
    }

    /// The owner's nodes, as far as they are known here.
    pub(super) fn known(&self) -> Vec<OwnSnapshot> {
        let paths = self
            .locks
            .owners
            .get(self.request.owner)
            .map(|nodes| nodes.paths);
        let paths = paths.unwrap_or_default();
        let is_broken = self.locks.owners.is_broken(self.request.owner);
        let own = |name: usize| {
            let (_, node) = paths.get(name)?.rsplit_once('/')?;
            nodes::entry_of(node)
        };
        let found = |name| OwnSnapshot {
            own: own(name),
            is_broken,
        };
        (0..self.request.claim.keys().len()).map(found).collect()
    }

    /// The owner's nodes, as the leader has them. Others with its uuid, which a late request has made, are none of
    /// its lease.
    pub(super) fn find(&self) -> Result<Vec<OwnSnapshot>, Failure> {
        let seen = self.locks.again(self.deadline, || {
            Call::new(self.locks, self.request, self.deadline)?.look_at_own()
        })?;
        let names = self.locks.names(self.request);
        let known = self
            .locks
            .owners
            .get(self.request.owner)
            .map(|nodes| nodes.paths);
        let known = known.unwrap_or_default();
        let is_known_broken = self.locks.owners.is_broken(self.request.owner);
        let found = names.iter().zip(&seen.names).map(|(name, children)| {
            let is_its = |entry: &&Entry| {
                let at_its_place =
                    |path: &String| nodes::is_at_place_of(path, &name.child(&entry.id));
                entry.is_of(self.request.owner) && known.iter().any(at_its_place)
            };
            OwnSnapshot {
                own: children.line.0.iter().find(is_its).cloned(),
                is_broken: is_known_broken || children.is_broken(self.request.owner),
            }
        });
        let found: Vec<_> = found.collect();
        if found.iter().any(|one| one.is_broken) {
            self.locks.heard_of_break(self.request);
        }
        Ok(found)
    }
}

/// Whether something else is there than what was seen.
fn has_changed(refused: &Refused) -> bool {
    matches!(
        refused.code,
        Code::NO_NODE | Code::NODE_EXISTS | Code::BAD_VERSION
    )
}

/// Leaves `held` in that version to whoever is first, or deletes it.
pub(super) fn give_up_marker(name: &Name, children: &Children, uuid: &str, version: i32) -> Change {
    let (path, version) = (name.child(MARKER), Some(version));
    match children.first_exclusive().filter(|first| *first != uuid) {
        Some(first) => Change::Set {
            path,
            data: first.as_bytes().to_vec(),
            version,
        },
        None => Change::Delete { path, version },
    }
}
