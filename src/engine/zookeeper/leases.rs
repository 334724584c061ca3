//! Leases are proven, and looked at; and an owner leaves the line that doesn't know whether it has the lock.

use std::sync::Arc;

use super::client::{Change, Code, Failure, Op, Refused};
use super::contents::{Children, marked};
use super::locks::Locks;
use super::nodes::{self, HELD, Name};
use crate::base::clock::Deadline;
use crate::base::owner::Owner;
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

/// Gives up all nodes of the owner, whichever those are.
pub(super) fn leave(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<(), Failure> {
    let Some(nodes) = locks.owners.get(request.owner) else {
        return Ok(());
    };
    locks.owners.unwatch(request.owner);
    if nodes.is_unclear || request.claim.is_exclusive() {
        let mut names = locks.names(request).into_iter();
        return names.try_for_each(|name| leave_with_held(locks, &name, request.owner, deadline));
    }
    let requests: Vec<_> = nodes.paths.into_iter().map(Op::delete).collect();
    locks.call_again(&requests, deadline).map(drop)
}

/// Its nodes are looked for. With each goes its `held`, to the one that is first, if there is one. One that stands behind may
/// take it for the holder at any moment, and make `held` its own: so its node goes only while `held` is as it was seen.
fn leave_with_held(
    locks: &Arc<Locks>,
    name: &Name,
    owner: &Owner,
    deadline: &Deadline,
) -> Result<(), Failure> {
    while let Some([first, own]) = leaving(locks, name, owner, deadline)? {
        let all = first.into_iter().chain(own.iter().cloned()).collect();
        let mut done = locks.change_again(all, deadline)?;
        if done.as_ref().is_err_and(|refused| !has_changed(refused)) {
            // Without room for a node, or the right to make it.
            done = locks.change_again(own, deadline)?;
        }
        if !done.is_err_and(|refused| has_changed(&refused)) {
            break;
        }
    }
    Ok(())
}

/// Whether something else is there than what was seen.
fn has_changed(refused: &Refused) -> bool {
    matches!(
        refused.code,
        Code::NO_NODE | Code::NODE_EXISTS | Code::BAD_VERSION
    )
}

/// What deletes the owner's nodes, if there are any, and what goes before that.
fn leaving(
    locks: &Arc<Locks>,
    name: &Name,
    owner: &Owner,
    deadline: &Deadline,
) -> Result<Option<[Vec<Change>; 2]>, Failure> {
    let held = name.child(HELD);
    let requests = [
        Op::sync(&name.path),
        Op::children(&name.path),
        Op::get(held.clone()),
    ];
    let mut replies = locks.call_again(&requests, deadline)?;
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
        Some((data, stat)) if marked(&data) == (uuid.to_owned(), false) => {
            vec![give_up_held(name, &children, uuid, stat.version)]
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

/// Leaves `held` in that version to whoever is first, or deletes it.
pub(super) fn give_up_held(name: &Name, children: &Children, uuid: &str, version: i32) -> Change {
    let (path, version) = (name.child(HELD), Some(version));
    match children.first_exclusive().filter(|first| *first != uuid) {
        Some(first) => Change::Set {
            path,
            data: first.as_bytes().to_vec(),
            version,
        },
        None => Change::Delete { path, version },
    }
}
