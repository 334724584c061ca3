//! One call of an owner: in which session, and how its names stand.

use std::{sync::Arc, time::Duration};

use super::client::{Failure, Op, Replies, Session};
use super::locks::Locks;
use super::nodes::{self, Children, LeadersClock, Name, NodeData};
use crate::base::{Deadline, Stored};
use crate::engine::Request;
use crate::engine::line::{Entry, Line, Presence, Snapshot, Standing, Who, uuid_of};

/// One call of an owner.
pub(super) struct Call<'a> {
    pub(super) locks: &'a Arc<Locks>,
    pub(super) request: Request<'a>,
    pub(super) session: Arc<Session>,
    pub(super) names: Vec<Name>,
    pub(super) deadline: Deadline,
}

/// How the names of a call stand.
pub(super) struct Listing {
    pub(super) names: Vec<Children>,
    /// If it was asked for.
    pub(super) value: Option<Stored>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        locks: &'a Arc<Locks>,
        request: Request<'a>,
        deadline: &Deadline,
    ) -> Result<Self, Failure> {
        let deadline = locks.gives_up_by(deadline);
        Ok(Call {
            session: locks.session(&deadline)?,
            names: locks.names(request),
            locks,
            request,
            deadline,
        })
    }

    pub(super) fn uuid(&self) -> &'a str {
        uuid_of(self.request.owner)
    }

    pub(super) fn ask(&self, requests: &[Op]) -> Result<Replies, Failure> {
        Ok(self.session.call(requests, &self.deadline)?)
    }

    /// The same without waiting for answers. It is carried out before all that this process asks later.
    pub(super) fn send(&self, requests: &[Op]) -> Result<(), Failure> {
        if requests.is_empty() {
            return Ok(());
        }
        Ok(self.session.send(requests, &self.deadline)?)
    }

    /// What lists all names, and brings the value if that is asked for.
    pub(super) fn listing(&self) -> impl Iterator<Item = Op> {
        let value = self.names.first().filter(|_| self.request.claim.has_value);
        let value = value.map(|name| Op::get(name.child(nodes::VALUE)));
        let lists = self.names.iter().map(|name| Op::children(&name.path));
        lists.chain(value)
    }

    pub(super) fn listed(&self, replies: &mut Replies) -> Result<Listing, Failure> {
        let names = self
            .names
            .iter()
            .map(|_| Ok(Children::of(replies.children()?)));
        let names = names.collect::<Result<_, Failure>>()?;
        let value = match self.request.claim.has_value {
            true => Some(replies.data()?.map(|(value, _)| value.into())),
            false => None,
        };
        Ok(Listing { names, value })
    }

    /// Lists the names, as this server has them.
    pub(super) fn list(&self) -> Result<Listing, Failure> {
        let requests: Vec<_> = self.listing().collect();
        self.listed(&mut self.ask(&requests)?)
    }

    /// Lists the names as the leader has them.
    pub(super) fn look(&self) -> Result<Listing, Failure> {
        let sync = self.names.first().map(|name| Op::sync(&name.path));
        let requests: Vec<_> = sync.into_iter().chain(self.listing()).collect();
        let mut replies = self.ask(&requests)?;
        replies.done()?;
        self.listed(&mut replies)
    }

    /// The same, with what is in the owner's nodes.
    pub(super) fn look_at_own(&self) -> Result<Listing, Failure> {
        let mut seen = self.look()?;
        let lines = self.names.iter().zip(&mut seen.names);
        let own = lines.filter_map(|(name, children)| {
            let at = children.line.find(self.request.owner)?.0;
            let path = name.child(&children.line.0[at].id);
            Some((&mut children.line, at, path))
        });
        let own: Vec<_> = own.collect();
        if own.is_empty() {
            return Ok(seen);
        }
        let gets: Vec<_> = own
            .iter()
            .map(|(_, _, path)| Op::get(path.clone()))
            .collect();
        let mut replies = self.ask(&gets)?;
        for (line, at, _) in own {
            let Some((data, stat)) = replies.data()? else {
                line.0.remove(at);
                continue;
            };
            let entry = &mut line.0[at];
            entry.token = NodeData::of(&data).token;
            entry.session = Some(stat.ephemeral_owner);
            entry.version = stat.czxid.cast_unsigned();
        }
        Ok(seen)
    }

    /// Whether the owner's nodes are all there. Others with its uuid are none of its own: an earlier session has left
    /// them.
    pub(super) fn has_all(&self, seen: &mut Listing, paths: &[String]) -> bool {
        let mut found = 0;
        for ((name, children), path) in self.names.iter().zip(&mut seen.names).zip(paths) {
            for entry in &mut children.line.0 {
                if name.child(&entry.id) == *path {
                    found += 1;
                } else if entry.is_of(self.request.owner) {
                    entry.who = Who::Stranger;
                }
            }
        }
        found == self.names.len()
    }

    /// Whether somebody is in the owner's way, in line or not.
    pub(super) fn is_blocked(&self, seen: &Listing) -> bool {
        let mut names = seen.names.iter();
        names.any(|children| self.is_blocked_in(&children.line))
    }

    fn is_blocked_in(&self, line: &Line) -> bool {
        match line.find(self.request.owner) {
            Some((at, _)) => line.standing(at) != Standing::Holds,
            None => !line.lets_in(self.request.claim.mode),
        }
    }

    /// Leaves out the kept entries whose time is over, where they are in the owner's way, and has them deleted.
    pub(super) fn collect_garbage(&self, seen: &mut Listing) -> Result<(), Failure> {
        let (mut over, mut next) = (Vec::new(), None);
        for (name, children) in self.names.iter().zip(&mut seen.names) {
            let line = &mut children.line;
            if !line.0.iter().any(Entry::is_kept) || !self.is_blocked_in(line) {
                continue;
            }
            let now = self.leaders_now(name)?;
            let left = self.locks.times_left(name, line, now, &self.deadline)?;
            let is_over = |entry: &Entry| left.get(&entry.id).is_some_and(|left| left.is_zero());
            let gone = line.0.extract_if(.., |entry| is_over(entry));
            over.extend(gone.map(|entry| Op::delete(name.child(&entry.id))));
            let left = left.into_values().filter(|left| !left.is_zero());
            next = next.into_iter().chain(left).min();
        }
        let until = next.map(|left| self.locks.clock.now().plus(left));
        let owners = &self.locks.owners;
        owners.change(self.request.owner, |nodes| nodes.kept_until = until);
        // Awaited: whoever is let in behind such a place stands behind none, so a break finds it.
        if !over.is_empty() {
            self.ask(&over)?;
        }
        Ok(())
    }

    /// The leader's clock, which is asked for unless it was known a moment ago: this host's may run faster.
    fn leaders_now(&self, name: &Name) -> Result<i64, Failure> {
        const MOMENT: Duration = Duration::from_secs(1);
        let (owners, owner) = (&self.locks.owners, self.request.owner);
        let known = owners.get(owner).and_then(|nodes| nodes.leaders_clock);
        let now = self.locks.clock.now();
        let clock = match known.filter(|LeadersClock(_, at)| now.since(*at) < MOMENT) {
            Some(clock) => clock,
            None => self.locks.leaders_clock(name, &self.deadline)?,
        };
        owners.change(owner, |nodes| nodes.leaders_clock = Some(clock));
        Ok(clock.at(self.locks.clock.now()))
    }

    /// What was seen, for an owner that isn't let in by it.
    pub(super) fn snapshot(&self, seen: Listing, own: Presence) -> Snapshot {
        let is_broken = |children: &Children| children.is_broken(self.request.owner);
        let is_broken = seen.names.iter().any(is_broken);
        if is_broken {
            self.locks.heard_of_break(self.request);
        }
        let lines = seen.names.into_iter().map(|children| children.line);
        Snapshot {
            lines: lines.collect(),
            is_whole: true,
            own,
            is_broken,
            is_abandoned: false,
            value: None,
            revision: 0,
        }
    }
}
