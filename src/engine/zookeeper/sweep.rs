//! What processes that are gone have left in a namespace: places that were to be kept, and are over; what tells
//! owners that their locks were broken; `held` of owners that never released their locks; and names that were made
//! and never used.
//!
//! One locker sweeps a namespace, once a day: whoever counts up the version of the namespace's node may. Time is the
//! leader's. Nothing is deleted that somebody may still want:
//!
//! - A kept place that is over is nobody's, and Curator's clients in the same line wait for it. It has its owner's
//!   uuid in its name, so no other is ever made there.
//! - What tells of a break, and `held`, are a day old: no longer than that an abandonment is told. `held` of a line
//!   in which an owner stands stays, and it is deleted in the version that was seen: whoever is let in meanwhile
//!   changes it, or makes it anew.
//! - A name has to be without nodes, or servers refuse to delete it. Whoever finds no name makes it again. Names that
//!   have had nodes are deleted by the servers.

use std::{sync::Arc, time::Duration};

use super::client::{Change, Failure, Op, Stat};
use super::locks::Locks;
use super::nodes::{self, Children, LeadersClock, MARKER, Name, left};
use crate::base::sys::collections::HashMap;
use crate::base::{BootInstant, Deadline, limits::ABANDONMENT, sys};
use crate::engine::line::Entry;

/// This many names are looked at together, with a pause behind them.
const PAGE: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// A namespace with more names isn't swept: their list would be longer than a frame may be, or take the session's
/// thread long.
const MOST_NAMES: i32 = 100_000;

/// How long a locker waits until it looks again whether a namespace is to be swept.
const EVERY: Duration = Duration::from_secs(3600);

/// What one question of a sweep may take.
const ANSWER: Duration = Duration::from_secs(5);

/// A node that may be garbage, and what makes it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its time is over.
    Kept,
    /// Nobody has asked for it, or changed it, for a day.
    Old,
}

/// An owner was let in to that name of the namespace. If it is time to look, a thread does, and sweeps it if that is
/// due.
pub(super) fn sweep_if_due(locks: &Arc<Locks>, namespace: &str, name: &Name) {
    if !is_time(&mut locks.sweeps.lock(), namespace, locks.clock.now()) {
        return;
    }
    let (locks, name) = (locks.clone(), name.clone());
    let path = locks.namespace_path(namespace);
    // Another locker does it, or this one in an hour.
    let _ = sys::spawn("crosslock-zk-sweep", move || {
        let deadline = Deadline::after(ANSWER).or(&locks.closed);
        if let Ok(clock) = locks.leaders_clock(&name, &deadline) {
            Sweep { locks, path, clock }.run();
        }
    });
}

/// Whether it is time. Then it isn't for a while.
fn is_time(next: &mut HashMap<Box<str>, BootInstant>, namespace: &str, now: BootInstant) -> bool {
    let is_time = next.get(namespace).is_none_or(|next| *next <= now);
    if is_time {
        next.insert(namespace.into(), now.plus(EVERY));
    }
    is_time
}

/// One look at a namespace.
struct Sweep {
    locks: Arc<Locks>,
    path: String,
    clock: LeadersClock,
}

impl Sweep {
    fn run(&self) {
        // What it can't do another locker may do tomorrow.
        if !matches!(self.is_claimed(), Ok(true)) {
            return;
        }
        let Ok(Some((names, _))) = self.children() else {
            return;
        };
        let names = names.iter().filter(|name| nodes::decoded(name).is_some());
        let names: Vec<_> = names.map(|name| self.name(name)).collect();
        for page in names.chunks(PAGE) {
            if self.locks.closed.is_set() || self.page(page).is_err() {
                return;
            }
            self.deadline().sleep(PAUSE);
        }
    }

    fn name(&self, name: &str) -> Name {
        let path = format!("{}/{name}", self.path);
        Name { path }
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(ANSWER).or(&self.locks.closed)
    }

    fn leaders_now(&self) -> i64 {
        self.clock.at(self.locks.clock.now())
    }

    /// Whether it is time, and this is the one locker that sweeps.
    fn is_claimed(&self) -> Result<bool, Failure> {
        let deadline = self.deadline();
        let found = self
            .locks
            .call_again(&[Op::get(self.path.clone())], &deadline)?
            .data()?;
        let Some((data, stat)) = found.filter(|(_, stat)| is_due(stat, self.leaders_now())) else {
            return Ok(false);
        };
        let claim = Change::Set {
            path: self.path.clone(),
            data,
            version: Some(stat.version),
        };
        let claimed = self.locks.call(&[claim.into()], &deadline)?.next()?;
        Ok(claimed.is_ok())
    }

    fn children(&self) -> Result<Option<(Vec<String>, Stat)>, Failure> {
        let list = [Op::children(&self.path)];
        self.locks.call_again(&list, &self.deadline())?.children()
    }

    /// Deletes what is garbage in these names.
    fn page(&self, names: &[Name]) -> Result<(), Failure> {
        let lists: Vec<_> = names.iter().map(|name| Op::children(&name.path)).collect();
        let mut replies = self.locks.call_again(&lists, &self.deadline())?;
        let (mut looks, mut deletes) = (Vec::new(), Vec::new());
        for name in names {
            let Some((children, stat)) = replies.children()? else {
                continue;
            };
            if is_unused(&stat, self.leaders_now()) {
                deletes.push(delete(name.path.clone(), None));
            }
            let found = candidates(&Children::of(Some((children, stat))));
            looks.extend(
                found
                    .into_iter()
                    .map(|(kind, node)| (kind, name.child(&node))),
            );
        }
        let gets: Vec<_> = looks
            .iter()
            .map(|(_, path)| Op::get(path.clone()))
            .collect();
        if !gets.is_empty() {
            let mut replies = self.locks.call_again(&gets, &self.deadline())?;
            for (kind, path) in looks {
                let found = replies.data()?;
                let garbage = found
                    .filter(|(content, stat)| is_garbage(kind, content, stat, self.leaders_now()));
                deletes.extend(garbage.map(|(_, stat)| delete(path, Some(stat.version))));
            }
        }
        if !deletes.is_empty() {
            // What is refused has changed meanwhile, or isn't this user's.
            self.locks.call(&deletes, &self.deadline())?;
        }
        Ok(())
    }
}

fn delete(path: String, version: Option<i32>) -> Op {
    Change::Delete { path, version }.into()
}

/// Whether a namespace with such a node is to be swept: it never was, or not for a day.
fn is_due(namespace: &Stat, leaders_now: i64) -> bool {
    let is_time = namespace.version == 0 || is_old(namespace.mtime, leaders_now);
    is_time && namespace.num_children <= MOST_NAMES
}

/// Whether a name was made, and its first node never was.
fn is_unused(name: &Stat, leaders_now: i64) -> bool {
    name.num_children == 0 && name.cversion == 0 && is_old(name.ctime, leaders_now)
}

/// The nodes that may be garbage.
fn candidates(children: &Children) -> Vec<(Kind, String)> {
    let broken = children.broken.iter();
    let mut found: Vec<_> = broken
        .map(|uuid| (Kind::Old, nodes::broken(uuid)))
        .collect();
    let entries = || children.line.0.iter();
    let kept = entries().filter(|entry| entry.is_kept());
    found.extend(kept.map(|entry| (Kind::Kept, entry.id.clone())));
    if children.has_marker && entries().all(Entry::is_kept) {
        found.push((Kind::Old, MARKER.to_owned()));
    }
    found
}

fn is_garbage(kind: Kind, content: &[u8], stat: &Stat, leaders_now: i64) -> bool {
    match kind {
        Kind::Kept => left(content, stat, leaders_now).is_zero(),
        Kind::Old => is_old(stat.mtime, leaders_now),
    }
}

fn is_old(since: i64, leaders_now: i64) -> bool {
    let day = i64::try_from(ABANDONMENT.as_millis()).unwrap_or(i64::MAX);
    since.saturating_add(day) < leaders_now
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";
    const DAY: i64 = 24 * 3600 * 1000;

    fn stat(at: i64) -> Stat {
        Stat {
            ctime: at,
            mtime: at,
            ..Stat::default()
        }
    }

    fn children(nodes: &[&str]) -> Children {
        let nodes = nodes.iter().map(|node| node.replace('U', UUID)).collect();
        Children::of(Some((nodes, Stat::default())))
    }

    fn found(nodes: &[&str]) -> Vec<String> {
        let found = candidates(&children(nodes)).into_iter();
        found.map(|(_, node)| node.replace(UUID, "U")).collect()
    }

    #[test]
    fn held_of_a_line_in_which_an_owner_stands_is_no_garbage() {
        let left = ["b-U", "kx-U-lock-0000000001", "held", "value"];
        assert_eq!(found(&left), left[..3]);
        for owner in ["x", "r", "p1of2"] {
            let owner = format!("{owner}-U-lock-0000000002");
            assert_eq!(
                found(&[&left[..], &[&owner]].concat()),
                left[..2],
                "{owner}"
            );
        }
        let curators = "_c_U-lock-0000000002";
        assert_eq!(found(&[&left[..], &[curators]].concat()), left[..2]);
    }

    #[test]
    fn what_nobody_has_touched_for_a_day_goes() {
        let swept = |version| Stat { version, ..stat(7) };
        let had_one = Stat {
            cversion: 2,
            ..stat(7)
        };
        let crowded = Stat {
            num_children: MOST_NAMES + 1,
            ..swept(0)
        };
        for (goes, expected) in [
            (is_garbage(Kind::Old, b"", &stat(7), 7 + DAY), false),
            (is_garbage(Kind::Old, b"", &stat(7), 8 + DAY), true),
            (is_garbage(Kind::Kept, b"100", &stat(7), 106), false),
            (is_garbage(Kind::Kept, b"100", &stat(7), 107), true),
            (is_unused(&stat(7), 7 + DAY), false),
            (is_unused(&stat(7), 8 + DAY), true),
            // Servers delete it.
            (is_unused(&had_one, 8 + DAY), false),
            (is_due(&swept(0), 8), true),
            (is_due(&swept(1), 7 + DAY), false),
            (is_due(&swept(1), 8 + DAY), true),
            (is_due(&crowded, 8), false),
        ] {
            assert_eq!(goes, expected);
        }
    }
}
