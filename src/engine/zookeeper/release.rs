//! How an owner leaves the line.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Change, Code, Failure, Kind, Op, Refused};
use super::kept;
use super::line::Line;
use super::locks::{Locks, Name, RETRY, children, get, sync};
use super::nodes::{self, HELD, Member, VALUE};
use super::owners::{Nodes, marked};
use super::replies::{Replies, Trouble, misunderstood};
use crate::base::clock::Deadline;
use crate::base::error::Result as PublicResult;
use crate::base::token::Ending;
use crate::engine::{Gone, Outcome, Release, Request};

/// Ends a lease, or has an owner leave that doesn't know what it has.
pub(super) fn release(
    locks: &Arc<Locks>,
    request: Request<'_>,
    release: Release<'_>,
    deadline: &Deadline,
) -> PublicResult<Outcome> {
    let released = match release.ending {
        Ending::Unknown => leave(locks, request, deadline).map(|()| Outcome::DONE),
        _ => end(locks, request, release, deadline),
    };
    released.map_err(|trouble| locks.error(Some(request.key()), trouble))
}

fn end(
    locks: &Arc<Locks>,
    request: Request<'_>,
    release: Release<'_>,
    deadline: &Deadline,
) -> Result<Outcome, Trouble> {
    let Some(nodes) = locks.owners.get(request.owner) else {
        return Ok(gone(locks, request));
    };
    let paths = if nodes.is_unclear {
        found(locks, request, deadline)?
    } else {
        nodes.paths
    };
    // From now on nobody is to be told that they are gone.
    locks.owners.unwatch(request.owner);
    let mut leaving = Leaving::new(locks, request, release, &paths);
    let was_asked_again = leaving.run(deadline)?;
    locks.owners.remove(request.owner);
    if leaving.gone.is_empty() && !paths.is_empty() {
        return Ok(Outcome::DONE);
    }
    let is_broken = find_broken(locks, request, deadline)?;
    Ok(if is_broken {
        Outcome::BROKEN
    } else if was_asked_again {
        Outcome::Gone(Gone::Repeated)
    } else {
        Outcome::NOT_OWNER
    })
}

/// What is known of an owner that has nothing.
fn gone(locks: &Locks, request: Request<'_>) -> Outcome {
    if locks.owners.is_broken(request.owner) {
        Outcome::BROKEN
    } else {
        Outcome::NOT_OWNER
    }
}

/// Whether somebody broke one of the owner's locks. The nodes that tell so are deleted.
pub(super) fn find_broken(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<bool, Trouble> {
    if locks.owners.is_broken(request.owner) {
        return Ok(true);
    }
    let broken = broken_paths(locks, request);
    let look = |path: &String| Op::Exists {
        path: path.clone(),
        watch: None,
    };
    let requests: Vec<_> = broken.iter().map(look).collect();
    let mut replies = locks.call_again(&requests, deadline)?;
    let mut is_broken = false;
    for _ in &broken {
        is_broken |= replies.exists()?;
    }
    if is_broken {
        locks.owners.set_broken(request.owner.as_str());
        locks.leftovers.leave(locks, broken);
    }
    Ok(is_broken)
}

/// The nodes that tell the owner that its locks were broken.
pub(super) fn broken_paths(locks: &Locks, request: Request<'_>) -> Vec<String> {
    let node = nodes::broken(nodes::uuid_of(request.owner));
    let names = locks.names(request).into_iter();
    names.map(|name| name.child(&node)).collect()
}

/// The nodes of the owner, of those names where it has one.
fn found(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<Vec<String>, Trouble> {
    let (names, uuid) = (locks.names(request), nodes::uuid_of(request.owner));
    let lists = names.iter().map(|name| children(&name.path));
    let requests: Vec<_> = [sync(&names[0].path)].into_iter().chain(lists).collect();
    let mut replies = locks.call_again(&requests, deadline)?;
    replies.done()?;
    let mut paths = Vec::new();
    for name in &names {
        let line = replies.line()?;
        let own = line
            .members
            .iter()
            .filter(|one| !one.is_kept && one.uuid == uuid);
        paths.extend(own.map(|member| name.child(&member.node)));
    }
    Ok(paths)
}

/// One transaction that ends a lease, and what of it was refused.
struct Leaving<'a> {
    locks: &'a Arc<Locks>,
    parts: Vec<Part>,
    /// The nodes that weren't there.
    gone: Vec<String>,
}

/// A change, and the owner's node with which it belongs together.
struct Part {
    node: String,
    does: Does,
    change: Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Store,
    Keep,
    Unmark,
    Leave,
}

impl<'a> Leaving<'a> {
    fn new(
        locks: &'a Arc<Locks>,
        request: Request<'_>,
        release: Release<'_>,
        paths: &[String],
    ) -> Self {
        let mut parts = Vec::new();
        let is_clean = matches!(release.ending, Ending::Clean { .. });
        for path in paths {
            let Some((name, node)) = path.rsplit_once('/') else {
                continue;
            };
            let path_of_name = name.to_owned();
            let name = Name { path: path_of_name };
            let mut part = |does, change| {
                let node = path.clone();
                parts.push(Part { node, does, change });
            };
            if let Some(value) = release.value {
                part(Does::Store, set(name.child(VALUE), value));
            }
            if let Some(member) = Member::of(node)
                && release.keep > Duration::ZERO
            {
                let (path, data) = (name.child(&member.kept()), kept::content(release.keep));
                part(Does::Keep, create(path, data));
            }
            if request.claim.is_exclusive() && is_clean {
                part(Does::Unmark, delete(name.child(HELD)));
            }
            // The last: whoever waits for it finds all of the others done.
            part(Does::Leave, delete(path.clone()));
        }
        Leaving {
            locks,
            parts,
            gone: Vec::new(),
        }
    }

    /// Whether it was asked more than once, because there was no answer.
    fn run(&mut self, deadline: &Deadline) -> Result<bool, Trouble> {
        let mut was_asked_again = false;
        while !self.parts.is_empty() {
            let changes = self.parts.iter().map(|part| part.change.clone()).collect();
            let session = self.locks.session(deadline)?;
            match session.call(&[Op::Multi(changes)], deadline) {
                Ok(answers) => match Replies::new(answers).multi()? {
                    Ok(_) => break,
                    Err(refused) => self.refused(refused.change, refused.code)?,
                },
                Err(lost) if is_lost(&lost.error) && !deadline.is_over() => {
                    was_asked_again |= lost.sent;
                    deadline.sleep(RETRY);
                }
                Err(lost) => return Err(lost.into()),
            }
        }
        Ok(was_asked_again)
    }

    /// Goes on without the change that was refused, or with another in its place.
    fn refused(&mut self, change: usize, code: Code) -> Result<(), Trouble> {
        let part = self.parts.get_mut(change).ok_or_else(misunderstood)?;
        match (part.does, code) {
            (Does::Leave, Code::NoNode) => {
                let node = part.node.clone();
                self.parts.retain(|part| part.node != node);
                self.gone.push(node);
            }
            (Does::Store, Code::NoNode | Code::NodeExists) => {
                part.change = other_store(&part.change);
            }
            (Does::Unmark, Code::NoNode) | (Does::Keep, Code::NodeExists) => {
                self.parts.remove(change);
            }
            // The name itself is gone, and with it the owner's node.
            (Does::Keep, Code::NoNode) => {
                let node = part.node.clone();
                self.parts.retain(|part| part.node != node);
                self.gone.push(node);
            }
            _ => return Err(code.into()),
        }
        Ok(())
    }
}

pub(super) fn is_lost(failure: &Failure) -> bool {
    matches!(failure, Failure::Unreachable(_))
}

pub(super) fn set(path: String, value: &[u8]) -> Change {
    Change::Set {
        path,
        data: value.to_vec(),
        version: None,
    }
}

pub(super) fn create(path: String, data: Vec<u8>) -> Change {
    Change::Create {
        path,
        data,
        kind: Kind::Persistent,
    }
}

pub(super) fn delete(path: String) -> Change {
    Change::Delete {
        path,
        version: None,
    }
}

/// Makes what isn't there, and changes what is.
pub(super) fn other_store(change: &Change) -> Change {
    match change.clone() {
        Change::Set { path, data, .. } => create(path, data),
        Change::Create { path, data, .. } => Change::Set {
            path,
            data,
            version: None,
        },
        other => other,
    }
}

/// Has an owner leave that doesn't know what it has.
pub(super) fn leave(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<(), Trouble> {
    let Some(nodes) = locks.owners.get(request.owner) else {
        return Ok(());
    };
    locks.owners.unwatch(request.owner);
    if nodes.is_unclear || request.claim.is_exclusive() {
        leave_with_held(locks, request, deadline)?;
    } else {
        leave_line(locks, &nodes, deadline)?;
    }
    locks.owners.remove(request.owner);
    Ok(())
}

fn leave_line(locks: &Arc<Locks>, nodes: &Nodes, deadline: &Deadline) -> Result<(), Trouble> {
    let delete = |path: &String| Op::Delete {
        path: path.clone(),
        version: None,
    };
    let requests: Vec<_> = nodes.paths.iter().map(delete).collect();
    if !requests.is_empty() {
        locks.call_again(&requests, deadline)?;
    }
    Ok(())
}

/// Its nodes are looked for. With each goes its `held`, to the one that is first, if there is one. One that stands behind may
/// take it for the holder at any moment, and make `held` its own: so its node goes only while `held` is as it was seen.
fn leave_with_held(
    locks: &Arc<Locks>,
    request: Request<'_>,
    deadline: &Deadline,
) -> Result<(), Trouble> {
    let uuid = nodes::uuid_of(request.owner);
    for name in locks.names(request) {
        while let Some([first, own]) = leaving(locks, &name, uuid, deadline)? {
            let all = first.into_iter().chain(own.iter().cloned()).collect();
            let mut done = locks.call_again(&[Op::Multi(all)], deadline)?.multi()?;
            if done.as_ref().is_err_and(|refused| !has_changed(refused)) {
                // Without room for a node, or the right to make it.
                done = locks.call_again(&[Op::Multi(own)], deadline)?.multi()?;
            }
            if !done.is_err_and(|refused| has_changed(&refused)) {
                break;
            }
        }
    }
    Ok(())
}

/// Whether something else is there than what was seen.
fn has_changed(refused: &Refused) -> bool {
    matches!(
        refused.code,
        Code::NoNode | Code::NodeExists | Code::BadVersion
    )
}

/// What deletes the owner's nodes, if there are any, and what goes before that.
fn leaving(
    locks: &Arc<Locks>,
    name: &Name,
    uuid: &str,
    deadline: &Deadline,
) -> Result<Option<[Vec<Change>; 2]>, Trouble> {
    let held = name.child(HELD);
    let requests = [sync(&name.path), children(&name.path), get(held.clone())];
    let mut replies = locks.call_again(&requests, deadline)?;
    replies.done()?;
    let (line, found) = (replies.line()?, replies.data()?);
    let own = line.members.iter();
    let own = own.filter(|one| !one.is_kept && one.uuid == uuid);
    let own: Vec<_> = own.map(|one| delete(name.child(&one.node))).collect();
    if own.is_empty() {
        return Ok(None);
    }
    let first = match found {
        Some((data, stat)) if marked(&data) == (uuid.to_owned(), false) => {
            vec![give_up_held(name, &line, uuid, stat.version)]
        }
        Some((_, stat)) => vec![Change::Check {
            path: held,
            version: Some(stat.version),
        }],
        // Refused if it is there by now.
        None => vec![create(held.clone(), Vec::new()), delete(held)],
    };
    Ok(Some([first, own]))
}

/// Leaves `held` in that version to whoever is first, or deletes it.
pub(super) fn give_up_held(name: &Name, line: &Line, uuid: &str, version: i32) -> Change {
    let (path, version) = (name.child(HELD), Some(version));
    match line.first_exclusive().filter(|first| *first != uuid) {
        Some(first) => Change::Set {
            path,
            data: first.as_bytes().to_vec(),
            version,
        },
        None => Change::Delete { path, version },
    }
}
