//! An ensemble of ZooKeeper, or one server: its protocol, its nodes, watches and sessions, and its leaders.
//!
//! The servers agree by fiat: there is one line of transactions, which is the leader's. A follower has the same ones
//! some time later. What the leader has committed is never lost while a disk is left that has it.
//!
//! What it doesn't have, because no world uses it: TTLs, quotas, rights, logins, words such as `srvr`, watches
//! that stay or are made anew, local sessions, observers, and servers that only read.

mod answers;
mod apply;
mod change;
mod client;
pub mod jute;
mod leader;
mod member;
mod quorum;
mod tree;
mod watches;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crosslock_world::service::{Connection, Fault, Host, Io, Service};

use self::client::Client;
use self::member::{FromLeader, Member, Role};

/// How many ticks a server waits for one that says nothing, as the servers of other tests are configured.
const SYNC_LIMIT: u32 = 20;
/// How often a leader looks for containers that are empty.
const SWEEPS_EACH: Duration = Duration::from_secs(60);

/// Servers of ZooKeeper.
#[derive(Default)]
pub struct ZooKeeper {
    tick: Duration,
    members: Vec<Member>,
    clients: BTreeMap<Connection, Client>,
    /// How many sessions there were.
    sessions: i64,
    /// When the next leader is found.
    elects_at: Option<Duration>,
    /// Who isn't to be the next leader.
    avoided: Option<Host>,
}

impl ZooKeeper {
    /// So many members, which are up, and the time in which they count. The last leads the others.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn new(members: usize, tick: Duration) -> Self {
        assert!(members > 0, "an ensemble has members");
        let mut ensemble = ZooKeeper {
            tick,
            members: (0..members).map(|_| Member::new()).collect(),
            ..Self::default()
        };
        let leader = members - 1;
        ensemble.make_leader(Duration::ZERO, leader);
        let epoch = ensemble.members[leader].epoch;
        for (at, member) in ensemble.members.iter_mut().enumerate() {
            member.epoch = epoch;
            if at != leader {
                member.role = Role::Following(leader);
            }
        }
        ensemble
    }

    /// Does all that is due, and asks to be woken for the rest.
    fn go_on(&mut self, io: &mut Io<'_>) {
        loop {
            let mut changed = self.review(io);
            for at in 0..self.members.len() {
                changed |= self.members[at].health.is_at_work()
                    && (self.exchange(io, at) || self.tend(io, at));
            }
            if !changed {
                break;
            }
        }
        let active = self
            .members
            .iter()
            .filter(|member| member.health.is_at_work());
        let due = active.flat_map(Member::times).chain(self.elects_at);
        // What is due already waits for something else, which will be told.
        if let Some(next) = due.filter(|due| *due > io.now).min() {
            io.wake_at(next);
        }
    }

    /// Takes the messages between a follower and its leader that have come.
    fn exchange(&mut self, io: &mut Io<'_>, at: Host) -> bool {
        let Role::Following(leader) = self.members[at].role else {
            return false;
        };
        if !self.reaches(at, leader) {
            return false;
        }
        let member = &mut self.members[at];
        let mut changed = false;
        if let Some(message) = pop_due(&mut member.to_leader, io.now) {
            self.lead(io, leader, at, message);
            changed = true;
        }
        let member = &mut self.members[at];
        if let Some(message) = pop_due(&mut member.from_leader, io.now) {
            match message {
                FromLeader::Commit(committed) => self.carry_out(io, at, &committed),
                FromLeader::Synced(connection) => {
                    self.answer_ordered(io, connection, Ok(Vec::new()));
                }
                FromLeader::Validated(connection, is_valid) => {
                    self.welcome(io, connection, is_valid)
                }
            }
            changed = true;
        }
        changed
    }

    fn kill(&mut self, io: &mut Io<'_>, at: Host) {
        for connection in self.clients_of(at) {
            self.forget(connection);
        }
        // Of what nobody was told, some was done.
        if self.has_majority(at)
            && let Some(leadership) = self.members[at].leadership()
        {
            let done = io.random.usize(..=leadership.pending.len());
            (0..done).for_each(|_| self.commit(io, at));
        }
        self.look_for_leader(at);
    }

    /// Has another member lead.
    fn elect_another(&mut self, io: &mut Io<'_>) {
        let places = 0..self.members.len();
        let leads = |at: &Host| {
            self.members[*at].health.is_at_work()
                && matches!(self.members[*at].role, Role::Leading(_))
        };
        for leader in places.filter(leads).collect::<Vec<_>>() {
            self.leave(io, leader);
            self.avoided = Some(leader);
        }
    }
}

fn pop_due<T>(queue: &mut VecDeque<(Duration, T)>, now: Duration) -> Option<T> {
    let is_due = queue.front().is_some_and(|(at, _)| *at <= now);
    is_due
        .then(|| queue.pop_front())?
        .map(|(_, message)| message)
}

impl Service for ZooKeeper {
    fn hosts(&self) -> usize {
        self.members.len()
    }

    fn connected(&mut self, _io: &mut Io<'_>, at: Host, connection: Connection) {
        self.clients.insert(connection, Client::new(at));
    }

    fn received(&mut self, io: &mut Io<'_>, _at: Host, connection: Connection, bytes: &[u8]) {
        self.take(io, connection, bytes);
        self.go_on(io);
    }

    fn closed(&mut self, _io: &mut Io<'_>, _at: Host, connection: Connection) {
        self.forget(connection);
    }

    fn woken(&mut self, io: &mut Io<'_>) {
        self.go_on(io);
    }

    fn fault(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        match fault {
            Fault::Kill => self.kill(io, at),
            Fault::Pause => {
                if let Role::Following(_) = self.members[at].role {
                    let leaves_at = &mut self.members[at].leaves_at;
                    leaves_at.get_or_insert(io.now + self.tick * SYNC_LIMIT);
                }
            }
            Fault::Resume => {
                let soon = io.now + Duration::from_micros(io.random.u64(..2_000));
                if let Some(leadership) = self.members[at].leadership() {
                    leadership.expires_from = soon;
                }
            }
            Fault::Own(_) => self.elect_another(io),
            // They start with what they had, and are asked for their clocks each time.
            _ => {}
        }
        self.members[at].health.suffer(fault);
        self.go_on(io);
    }

    fn own_faults(&self) -> &'static [&'static str] {
        &["election"]
    }

    fn lasting(&self, now: Duration) -> Vec<(String, Duration)> {
        let leader = self.newest();
        let Member {
            tree, role, health, ..
        } = &self.members[leader];
        let Role::Leading(leadership) = role else {
            return Vec::new();
        };
        if !health.is_at_work() || !self.has_majority(leader) {
            return Vec::new();
        }
        let left = |session: i64| {
            let ends = leadership.sessions.get(&session)?.ends_at;
            Some(ends.saturating_sub(now))
        };
        let nodes = tree.nodes.iter();
        let lasting = nodes.filter_map(|(path, node)| Some((path.clone(), left(node.owner)?)));
        lasting.collect()
    }

    fn contents(&self) -> Vec<String> {
        self.members[self.newest()].tree.lines()
    }
}
