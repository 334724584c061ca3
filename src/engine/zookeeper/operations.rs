//! What operators see of names, and do with them.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Change, Code, Op, Stat};
use super::kept::{self, Left};
use super::line::Line;
use super::locks::{Locks, Name, children, get, sync};
use super::looks::LeadersClock;
use super::nodes::{self, HELD, Member};
use super::owners::{Card, marked};
use super::release::{create, delete};
use super::replies::{Replies, Trouble};
use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::base::inspection::{Holder, Inspection, LockState, Party, Waiter, Wants};
use crate::base::limits::ABANDONMENT;
use crate::base::name::{Key, Namespace};
use crate::engine::line::{token_of, used};
use crate::engine::{Cursor, Page};

/// So many names are looked at together.
const PAGE: usize = 100;

/// A member of a line with what is in its node.
struct Seen<'a> {
    member: &'a Member,
    content: Vec<u8>,
    stat: Stat,
}

/// A name as an operator sees it.
struct Look {
    line: Line,
    /// What is in the node of each member, if it is still there.
    contents: Vec<Option<(Vec<u8>, Stat)>>,
    /// What is in `held`.
    held: Option<(Vec<u8>, Stat)>,
    /// The name itself, if it has a node.
    stat: Option<Stat>,
    /// The leader's clock, in milliseconds since 1970; `None` if nobody is in line.
    leaders_now: Option<i64>,
}

impl Look {
    fn at(locks: &Arc<Locks>, name: &Name, deadline: &Deadline) -> Result<Self, Trouble> {
        let requests = [sync(&name.path), children(&name.path)];
        let mut replies = locks.call_again(&requests, deadline)?;
        replies.done()?;
        let found = replies.children()?;
        let (line, stat) = match found {
            Some((children, stat)) => (Line::of(&children), Some(stat)),
            None => (Line::default(), None),
        };
        let members = line
            .members
            .iter()
            .map(|member| get(name.child(&member.node)));
        let requests: Vec<_> = members.chain([get(name.child(HELD))]).collect();
        let mut replies = locks.call_again(&requests, deadline)?;
        let contents = line.members.iter().map(|_| replies.data());
        let contents = contents.collect::<Result<_, _>>()?;
        let held = replies.data()?;
        let leaders_now = if line.members.is_empty() {
            None
        } else {
            leaders_now(locks, name, deadline)?
        };
        Ok(Look {
            line,
            contents,
            held,
            stat,
            leaders_now,
        })
    }

    /// Those that are still there, in line, without places that are over.
    fn seen(&self) -> Vec<Seen<'_>> {
        let members = self.line.members.iter().zip(&self.contents);
        let seen = members.filter_map(|(member, found)| {
            let (content, stat) = found.clone()?;
            let seen = Seen {
                member,
                content,
                stat,
            };
            let is_over = member.is_kept && self.left(&seen) == Some(Duration::ZERO);
            (!is_over).then_some(seen)
        });
        seen.collect()
    }

    /// For how long a kept place stays taken, if the leader's clock is known.
    fn left(&self, kept: &Seen<'_>) -> Option<Duration> {
        let Left(left) = kept::left(&kept.content, &kept.stat, self.leaders_now?);
        Some(left)
    }

    fn since(&self, millis: i64) -> Option<Duration> {
        let passed = self.leaders_now?.saturating_sub(millis);
        Some(Duration::from_millis(passed.try_into().unwrap_or(0)))
    }

    fn holder(&self, seen: &Seen<'_>) -> Holder {
        let card = Card::of(&seen.content);
        let (member, stat) = (seen.member, &seen.stat);
        let held = self.held.as_ref().map(|(held, stat)| (marked(held), stat));
        let own = held.filter(|((uuid, _), _)| *uuid == member.uuid);
        let is_told = own.as_ref().is_some_and(|((_, is_told), _)| *is_told);
        let since = own.map_or(stat.ctime, |(_, held)| held.mtime);
        let revision = stat.czxid.try_into().unwrap_or(0);
        let permits = match member.mode {
            Mode::Permits { count, .. } => count,
            Mode::Exclusive | Mode::Shared => 1,
        };
        Holder {
            party: Party::of(card.owner.holder()),
            permits,
            held_for: self.since(since),
            // Its session may end as late as that, if it isn't there any more.
            remaining: Some(Duration::from_millis(card.ttl_millis)),
            token: Some(card.token.unwrap_or(token_of(revision, is_told).number)),
        }
    }

    fn waiter(&self, seen: &Seen<'_>) -> Waiter {
        Waiter {
            party: Party::of(Card::of(&seen.content).owner.holder()),
            wants: match seen.member.mode {
                Mode::Exclusive => Wants::Exclusive,
                Mode::Shared => Wants::Shared,
                Mode::Permits { count, .. } => Wants::Permits { count },
            },
            waited_for: self.since(seen.stat.ctime),
        }
    }

    /// A number below all tokens that are given later, and not below those that were.
    fn last_token(&self) -> Option<u64> {
        let stat = self.stat.filter(|stat| stat.pzxid != stat.czxid)?;
        Some(token_of(stat.pzxid.try_into().ok()?, false).number)
    }
}

/// `None` for a user that may only read.
fn leaders_now(
    locks: &Arc<Locks>,
    name: &Name,
    deadline: &Deadline,
) -> Result<Option<i64>, Trouble> {
    match locks.leaders_clock(name, deadline) {
        Ok(LeadersClock(now, _)) => Ok(Some(now)),
        Err(Trouble::Refused(Code::NoAuth | Code::NoNode)) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

pub(super) fn inspect(
    locks: &Arc<Locks>,
    key: &Key,
    deadline: &Deadline,
) -> Result<Inspection, Trouble> {
    let look = Look::at(locks, &locks.name(key), deadline)?;
    let seen = look.seen();
    let modes: Vec<_> = seen.iter().map(|one| one.member.mode).collect();
    let holds: Vec<_> = crate::engine::line::holders(&modes).collect();
    let count = holds.iter().filter(|holds| **holds).count();
    // Whoever holds has nobody ahead that doesn't.
    let (holding, waiting) = seen.split_at(count);
    let holders: Vec<_> = holding.iter().filter(|one| !one.member.is_kept).collect();
    let holders: Vec<_> = holders.into_iter().map(|one| look.holder(one)).collect();
    let largest = holders.iter().filter_map(|holder| holder.token).max();
    Ok(Inspection {
        name: key.name().to_owned(),
        state: state(&look, holding),
        holders,
        waiters: waiting.iter().map(|one| look.waiter(one)).collect(),
        last_token: largest.or_else(|| look.last_token()),
    })
}

fn state(look: &Look, holding: &[Seen<'_>]) -> LockState {
    let modes: Vec<_> = holding.iter().map(|one| one.member.mode).collect();
    match modes.first() {
        None => LockState::Free,
        Some(Mode::Permits { .. }) => {
            let each = modes.iter().filter_map(|mode| match mode {
                Mode::Permits { of, .. } => Some(*of),
                Mode::Exclusive | Mode::Shared => None,
            });
            let taken = used(&modes).try_into().unwrap_or(u32::MAX);
            LockState::Permits {
                taken,
                of: each.max(),
            }
        }
        Some(_) if holding.iter().all(|one| one.member.is_kept) => LockState::Kept {
            remaining: holding.iter().filter_map(|one| look.left(one)).max(),
        },
        Some(Mode::Exclusive) => LockState::Exclusive,
        Some(Mode::Shared) => LockState::Shared,
    }
}

pub(super) fn list(
    locks: &Arc<Locks>,
    namespace: &Namespace,
    prefix: &str,
    cursor: &Cursor,
    deadline: &Deadline,
) -> Result<Page, Trouble> {
    let path = locks.namespace_path(namespace.as_str());
    let mut replies = locks.call_again(&[sync(&path), children(&path)], deadline)?;
    replies.done()?;
    let nodes = replies
        .children()?
        .map_or_else(Vec::new, |(nodes, _)| nodes);
    let names = nodes.iter().filter_map(|node| nodes::decoded(node));
    let after = cursor.after.as_deref().unwrap_or("");
    let is_one = |name: &String| name.starts_with(prefix) && name.as_str() > after;
    let mut names: Vec<_> = names.filter(is_one).collect();
    names.sort();
    let next = names.get(PAGE - 1).filter(|_| names.len() > PAGE).cloned();
    names.truncate(PAGE);
    let next = next.map(|last| Cursor {
        after: Some(last),
        ..Cursor::default()
    });
    let names = taken(locks, namespace, names, deadline)?;
    Ok(Page { names, next })
}

/// Those of the names that somebody has, or keeps from others.
fn taken(
    locks: &Arc<Locks>,
    namespace: &Namespace,
    names: Vec<String>,
    deadline: &Deadline,
) -> Result<Vec<String>, Trouble> {
    let keys = names
        .iter()
        .filter_map(|name| Key::new(namespace, name).ok());
    let places: Vec<_> = keys.map(|key| locks.name(&key)).collect();
    let requests: Vec<_> = places.iter().map(|place| children(&place.path)).collect();
    if requests.is_empty() {
        return Ok(names);
    }
    let mut replies = locks.call_again(&requests, deadline)?;
    let mut taken = Vec::new();
    for (name, place) in names.into_iter().zip(places) {
        let line = replies.line()?;
        let is_taken = if line.kept().next().is_some() {
            let line = kept::current_line(locks, &place, deadline)?;
            !line.members.is_empty()
        } else {
            !line.members.is_empty()
        };
        if is_taken {
            taken.push(name);
        }
    }
    Ok(taken)
}

pub(super) fn break_lock(
    locks: &Arc<Locks>,
    key: &Key,
    deadline: &Deadline,
) -> Result<Vec<Holder>, Trouble> {
    let name = locks.name(key);
    loop {
        let look = Look::at(locks, &name, deadline)?;
        delete_old(locks, &name, &look, deadline)?;
        let holding = look.line.holders();
        let seen = look.seen();
        let seen = seen.iter().filter(|one| holding.contains(&one.member));
        let seen: Vec<_> = seen.collect();
        let held = seen.iter().filter(|one| !one.member.is_kept);
        let holders = held.map(|one| look.holder(one)).collect();
        let changes: Vec<_> = holding
            .into_iter()
            .flat_map(|one| ending(&name, one))
            .collect();
        if changes.is_empty() {
            return Ok(holders);
        }
        let session = locks.session(deadline)?;
        let answers = session.call(&[Op::Multi(changes)], deadline)?;
        match Replies::new(answers).multi()? {
            Ok(_) => return Ok(holders),
            // One of them has left, or was broken by another.
            Err(refused) if matches!(refused.code, Code::NoNode | Code::NodeExists) => {}
            Err(refused) => return Err(refused.code.into()),
        }
    }
}

/// What ends a place. Its owner is told by a change of its node; then it finds the other.
fn ending(name: &Name, member: &Member) -> Vec<Change> {
    let path = name.child(&member.node);
    if member.is_kept || member.is_curators() {
        return vec![delete(path)];
    }
    let change = Change::Set {
        path: path.clone(),
        data: b"broken".to_vec(),
        version: None,
    };
    let broken = create(name.child(&nodes::broken(&member.uuid)), Vec::new());
    vec![broken, change, delete(path)]
}

/// Deletes what tells owners that their locks were broken, if none of them has asked for a day.
fn delete_old(
    locks: &Arc<Locks>,
    name: &Name,
    look: &Look,
    deadline: &Deadline,
) -> Result<(), Trouble> {
    let Some(now) = look.leaders_now else {
        return Ok(());
    };
    let paths = look.line.broken.iter();
    let paths: Vec<_> = paths.map(|uuid| name.child(&nodes::broken(uuid))).collect();
    let requests: Vec<_> = paths.iter().cloned().map(get).collect();
    if requests.is_empty() {
        return Ok(());
    }
    let mut replies = locks.call_again(&requests, deadline)?;
    let mut old = Vec::new();
    for path in paths {
        let day = i64::try_from(ABANDONMENT.as_millis()).unwrap_or(i64::MAX);
        if replies
            .data()?
            .is_some_and(|(_, stat)| stat.ctime.saturating_add(day) < now)
        {
            old.push(path);
        }
    }
    locks.leftovers.leave(locks, old);
    Ok(())
}
