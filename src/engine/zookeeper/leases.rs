//! Leases are proven, and looked at.

use std::sync::Arc;

use super::client::{Failure, Op};
use super::locks::Locks;
use super::nodes;
use crate::base::clock::Deadline;
use crate::engine::line::uuid_of;
use crate::engine::{Outcome, Request};

/// Proves that the session lives, and that the owner has its nodes. While the session beats, and the nodes are watched, both are
/// known: a server answers a beat behind all that it has to tell of what was done before. Otherwise the leader is asked, and
/// the nodes are looked at.
pub(super) fn renew(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<Outcome, Failure> {
    let (owners, owner) = (&locks.owners, request.owner);
    if owners.get(owner).is_some() {
        let session = locks.session(deadline)?;
        // Read first: what the last beat's answer came behind, the watchers have been told.
        let lately = session.proven_lately();
        let is_watched = || owners.is_watched(owner, session.id());
        let (since, are_there) = match lately.filter(|_| is_watched()) {
            Some(since) => (since, true),
            None => {
                let since = session.prove(deadline)?;
                (since, are_there(locks, request, false, deadline)?)
            }
        };
        if are_there && owners.renewed(owner, session.id(), since.plus(request.ttl)) {
            return Ok(Outcome::since(since));
        }
    }
    Ok(match is_broken(locks, request, deadline)? {
        true => Outcome::BROKEN,
        false => Outcome::NOT_OWNER,
    })
}

/// Whether the owner has its nodes, as this server has them, or as the leader does. They are watched, if nothing does so.
pub(super) fn are_there(
    locks: &Arc<Locks>,
    request: Request<'_>,
    is_current: bool,
    deadline: &Deadline,
) -> Result<bool, Failure> {
    let Some(nodes) = locks.owners.get(request.owner) else {
        return Ok(false);
    };
    let Some(first) = nodes.paths.first() else {
        return Ok(false);
    };
    let is_unwatched = locks.owners.is_unwatched(request.owner);
    let mut watchers = Vec::new();
    let look = |path: &String| match is_unwatched {
        true => {
            let watcher = locks.watcher(request.owner);
            watchers.push(watcher.clone());
            Op::watch(path, watcher)
        }
        false => Op::get(path.clone()),
    };
    let mut requests: Vec<_> = nodes.paths.iter().map(look).collect();
    if is_current {
        requests.insert(0, Op::sync(first));
    }
    let mut replies = locks.call_again(&requests, deadline)?;
    if is_current {
        replies.done()?;
    }
    for _ in &nodes.paths {
        if replies.data()?.is_none() {
            return Ok(false);
        }
    }
    locks.owners.watched(request.owner, watchers);
    Ok(true)
}

/// Whether somebody broke one of the owner's locks.
fn is_broken(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<bool, Failure> {
    if locks.owners.is_broken(request.owner) {
        return Ok(true);
    }
    let node = nodes::broken(uuid_of(request.owner));
    let names = locks.names(request).into_iter();
    let looks: Vec<_> = names.map(|name| Op::exists(name.child(&node))).collect();
    let mut replies = locks.call_again(&looks, deadline)?;
    let mut is_broken = false;
    for _ in &looks {
        is_broken |= replies.exists()?;
    }
    if is_broken {
        locks.heard_of_break(request);
    }
    Ok(is_broken)
}

pub(super) fn is_lost(failure: &Failure) -> bool {
    matches!(failure, Failure::Unreachable(_))
}
