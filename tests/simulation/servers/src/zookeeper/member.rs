//! What each server has, and what it tells another.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crosslock_world::service::{Connection, Host};

use super::change::Transaction;
use super::tree::Tree;
use super::watches::Watches;
use crate::health::Health;

/// A server.
#[derive(Default)]
pub(super) struct Member {
    pub(super) health: Health,
    pub(super) role: Role,
    /// Of the leader that it follows, or that it is.
    pub(super) epoch: i64,
    pub(super) tree: Tree,
    pub(super) watches: Watches,
    /// What a follower has for its leader, and when it is there.
    pub(super) to_leader: VecDeque<(Duration, ToLeader)>,
    /// What the leader has for it.
    pub(super) from_leader: VecDeque<(Duration, FromLeader)>,
    /// The sessions that have given a sign of life since the leader's last ping, and their timeouts.
    pub(super) touched: BTreeMap<i64, i32>,
    /// When a follower leaves a leader that it doesn't reach.
    pub(super) leaves_at: Option<Duration>,
    /// When it has found a leader.
    pub(super) joins_at: Option<Duration>,
}

#[derive(Default)]
pub(super) enum Role {
    #[default]
    /// It serves nobody.
    Looking,
    Following(Host),
    Leading(Leadership),
}

/// What only a leader has, and what isn't on a disk.
pub(super) struct Leadership {
    pub(super) sessions: BTreeMap<i64, Tracked>,
    pub(super) pending: VecDeque<(Duration, Pending)>,
    /// Sessions don't end before: a leader that was stopped hears of them first, or doesn't.
    pub(super) expires_from: Duration,
    pub(super) pings_at: Duration,
    pub(super) sweeps_at: Duration,
    /// When it gives up, because it has no majority.
    pub(super) quits_at: Option<Duration>,
    /// The last transaction of those before it. Others know of no later one until it has done one.
    pub(super) inherited: i64,
    /// Whether it knows that its followers have left.
    pub(super) is_left: bool,
}

/// What a leader knows of a session.
pub(super) struct Tracked {
    pub(super) ends_at: Duration,
    /// Where its connection is.
    pub(super) owner: Option<Host>,
    pub(super) is_closing: bool,
}

pub(super) enum Pending {
    Proposal(Transaction),
    /// It is answered behind the proposals that were there before it.
    Sync(Host, Connection),
}

pub(super) enum ToLeader {
    Propose(Transaction),
    Sync(Connection),
    /// Somebody goes on with a session there, with that timeout.
    Validate(Connection, i64, i32),
}

pub(super) enum FromLeader {
    Commit(Transaction),
    Synced(Connection),
    /// Whether there is such a session.
    Validated(Connection, bool),
}

impl Member {
    pub(super) fn new() -> Self {
        Member {
            tree: Tree::new(),
            ..Member::default()
        }
    }

    pub(super) fn serves(&self) -> bool {
        !matches!(self.role, Role::Looking)
    }

    pub(super) fn leadership(&mut self) -> Option<&mut Leadership> {
        match &mut self.role {
            Role::Leading(leadership) => Some(leadership),
            _ => None,
        }
    }

    /// The last transaction that it has on its disk. A leader begins to count before it has done any.
    pub(super) fn last(&self) -> i64 {
        match &self.role {
            Role::Leading(leadership) if self.tree.zxid == self.epoch << 32 => leadership.inherited,
            _ => self.tree.zxid,
        }
    }

    /// What another has that begins to follow it.
    pub(super) fn copy(&self) -> Tree {
        let mut tree = self.tree.clone();
        tree.zxid = self.last();
        tree
    }

    /// When it has something to do, as far as that is known.
    pub(super) fn times(&self) -> impl Iterator<Item = Duration> {
        let inbox = self.from_leader.front().map(|(at, _)| *at);
        let outbox = self.to_leader.front().map(|(at, _)| *at);
        let leadership = match &self.role {
            Role::Leading(leadership) => Some(leadership.times()),
            _ => None,
        };
        let own = [inbox, outbox, self.leaves_at, self.joins_at];
        own.into_iter()
            .flatten()
            .chain(leadership.into_iter().flatten())
    }
}

impl Leadership {
    /// Each session has its whole time again.
    pub(super) fn new(tree: &Tree, now: Duration, tick: Duration) -> Self {
        let track =
            |(id, timeout): (&i64, &i32)| (*id, Tracked::new(None, ends_at(now, *timeout, tick)));
        Leadership {
            sessions: tree.sessions.iter().map(track).collect(),
            pending: VecDeque::new(),
            expires_from: now,
            pings_at: now + tick / 2,
            sweeps_at: now + super::SWEEPS_EACH,
            quits_at: None,
            inherited: tree.zxid,
            is_left: false,
        }
    }

    fn times(&self) -> impl Iterator<Item = Duration> {
        let ends = self.sessions.values().filter(|one| !one.is_closing);
        let ends = ends.map(|one| one.ends_at.max(self.expires_from)).min();
        let first = self.pending.front().map(|(at, _)| *at);
        let known = [Some(self.sweeps_at), Some(self.pings_at), ends, first];
        known.into_iter().flatten().chain(self.quits_at)
    }

    /// A sign of life. Returns whether there is such a session.
    pub(super) fn touch(
        &mut self,
        session: i64,
        timeout: i32,
        now: Duration,
        tick: Duration,
    ) -> bool {
        let tracked = self.open(session);
        tracked
            .map(|tracked| tracked.ends_at = ends_at(now, timeout, tick))
            .is_some()
    }

    fn open(&mut self, session: i64) -> Option<&mut Tracked> {
        let tracked = self.sessions.get_mut(&session);
        tracked.filter(|one| !one.is_closing)
    }

    /// Why what comes of that session from that server is refused.
    pub(super) fn check(&mut self, session: i64, from: Host) -> Option<i32> {
        use super::jute::error;
        match self.open(session) {
            None => Some(error::SESSION_EXPIRED),
            Some(tracked) => {
                let is_moved = *tracked.owner.get_or_insert(from) != from;
                is_moved.then_some(error::SESSION_MOVED)
            }
        }
    }
}

impl Tracked {
    pub(super) fn new(owner: Option<Host>, ends_at: Duration) -> Self {
        Tracked {
            ends_at,
            owner,
            is_closing: false,
        }
    }
}

/// Sessions end together, at whole ticks.
pub(super) fn ends_at(now: Duration, timeout: i32, tick: Duration) -> Duration {
    let at = (now + millis(timeout)).as_millis();
    let tick = tick.as_millis();
    let rounded = (at / tick + 1) * tick;
    Duration::from_millis(rounded.try_into().expect("the world isn't as old"))
}

pub(super) fn millis(timeout: i32) -> Duration {
    Duration::from_millis(timeout.try_into().unwrap_or(0))
}
