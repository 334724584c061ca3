//! Members: what happens to them, and who leads.

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_world::service::{Fault, Host, Io};
use serde_json::Value;

use super::http::Refusal;
use super::request::Command;
use super::store::State;
use super::{Etcd, Timer};
use crate::health::Health;

#[derive(Default)]
pub(super) struct Member {
    pub(super) id: u64,
    pub(super) health: Health,
    pub(super) term: u64,
    /// Whom it takes for the leader.
    pub(super) leader: Option<Host>,
    lonely_since: Duration,
    pub(super) state: State,
    /// How many entries of the log it has carried out.
    pub(super) applied: usize,
    /// When each lease is over, at one that takes itself for the leader.
    pub(super) lessor: Option<BTreeMap<i64, Duration>>,
}

/// After that time without a leader streams end.
const STREAMS_LAST: Duration = Duration::from_secs(3);
/// What a new leader adds to the time of leases: that in which it was elected.
const EXTENSION: Duration = Duration::from_secs(1);

impl Member {
    pub(super) fn new() -> Self {
        Self {
            term: 1,
            state: State::new(),
            ..Self::default()
        }
    }

    /// Carries out what was agreed on.
    pub(super) fn apply(&mut self, command: &Command, now: Duration) -> Result<Value, Refusal> {
        self.applied += 1;
        let answer = self.state.apply(command)?;
        match command {
            Command::Grant(lease) => {
                let time = self.ttl_of(lease.id);
                if let (Some(lessor), Some(time)) = (&mut self.lessor, time) {
                    lessor.insert(lease.id, now + time);
                }
            }
            Command::Revoke(id) => _ = self.lessor.as_mut().and_then(|lessor| lessor.remove(id)),
            Command::Txn(_) => {}
        }
        Ok(answer)
    }

    /// For how long a lease is granted.
    pub(super) fn ttl_of(&self, id: i64) -> Option<Duration> {
        let lease = self.state.leases.get(&id)?;
        Some(Duration::from_secs(u64::try_from(lease.ttl).unwrap_or(0)))
    }

    /// Gives each lease its whole time.
    fn lead(&mut self, now: Duration) {
        let ids = self.state.leases.keys();
        let lasting = ids.filter_map(|id| Some((*id, now + self.ttl_of(*id)? + EXTENSION)));
        self.lessor = Some(lasting.collect());
    }
}

impl Etcd {
    /// Gives all their numbers.
    pub(super) fn found(&mut self, io: &mut Io<'_>) {
        self.cluster = io.random.u64(1..);
        for member in &mut self.members {
            member.id = io.random.u64(1..);
        }
    }

    pub(super) fn reaches(&self, from: Host, to: Host) -> bool {
        let [one, other] = [from, to].map(|at| self.members[at].health);
        match from == to {
            true => one.is_at_work(),
            false => one.is_there() && other.is_there(),
        }
    }

    /// Whether a member reaches another, or will when that one goes on.
    pub(super) fn will_reach(&self, from: Host, to: Host) -> bool {
        let [one, other] = [from, to].map(|at| self.members[at].health);
        self.reaches(from, to) || !one.is_cut && other.is_linked() && other.is_paused
    }

    fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Whether there is a leader that can decide.
    pub(super) fn is_healthy(&self) -> bool {
        self.leader.is_some_and(|leader| {
            let hosts = 0..self.members.len();
            let has = |at: &Host| self.reaches(leader, *at);
            self.members[leader].health.is_at_work() && hosts.filter(has).count() >= self.majority()
        })
    }

    pub(super) fn suffer(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        self.members[at].health.suffer(fault);
        match fault {
            Fault::Kill => self.kill(at),
            Fault::Start { .. } => self.members[at].lonely_since = io.now,
            Fault::Resume => {
                self.look_at_all(at);
                if self.members[at].leader.is_none() {
                    self.after(Duration::ZERO, Timer::EndStreams(at));
                }
            }
            _ => {}
        }
        self.settle(io);
    }

    fn kill(&mut self, at: Host) {
        let member = &mut self.members[at];
        (member.leader, member.lessor) = (None, None);
        self.clients.retain(|_, client| client.at != at);
        self.waiting.retain(|_, waiting| waiting.at != at);
        let tokens = self.tokens.iter_mut();
        tokens.for_each(|tokens| tokens.retain(|(host, _), _| *host != at));
        if self.leader == Some(at) {
            self.leader = None;
        }
    }

    /// Sees to it that members notice in their time what has changed between them.
    fn settle(&mut self, io: &mut Io<'_>) {
        let is_healthy = self.is_healthy();
        if is_healthy {
            self.decide_soon(io);
        }
        let mut is_strange =
            !is_healthy && self.members.iter().any(|member| member.health.is_at_work());
        for at in 0..self.members.len() {
            let member = &self.members[at];
            if !is_healthy || !member.health.is_at_work() {
                continue;
            }
            if self.leader.is_some_and(|leader| self.reaches(at, leader)) {
                let is_current = (member.leader, member.term) == (self.leader, self.term);
                if !is_current || member.applied < self.log.len() {
                    self.within(io, 1..100, Timer::Hear(at));
                }
            } else {
                is_strange |= member.leader.is_some();
            }
        }
        if is_strange && !std::mem::replace(&mut self.election_is_due, true) {
            self.within(io, 1000..1500, Timer::Elect);
        }
    }

    /// The time has come at which members that hear of no leader want another.
    pub(super) fn hold_election(&mut self, io: &mut Io<'_>) {
        if !self.is_healthy() {
            self.elect(io, None);
        }
        for at in 0..self.members.len() {
            let member = &self.members[at];
            let believes = member.health.is_at_work() && member.leader.is_some();
            if !believes || self.is_served(at) {
                continue;
            }
            match member.leader == Some(at) {
                // It hears for as long that nobody answers.
                true => self.within(io, 0..1000, Timer::Lonely(at)),
                false => self.be_lonely(io, at),
            }
        }
        self.settle(io);
    }

    /// Whether there is a leader for that member.
    fn is_served(&self, at: Host) -> bool {
        self.is_healthy() && self.leader.is_some_and(|leader| self.reaches(at, leader))
    }

    /// Makes one the leader, another than `not` if there is one; no one if no majority can agree.
    pub(super) fn elect(&mut self, io: &mut Io<'_>, not: Option<Host>) {
        let is_able = |at: &Host| {
            let member = &self.members[*at];
            let is_reached = self.members.len() == 1 || !member.health.is_cut;
            member.health.is_at_work() && is_reached
        };
        let able: Vec<_> = (0..self.members.len()).filter(is_able).collect();
        if able.len() < self.majority() {
            return;
        }
        let others: Vec<_> = able.iter().copied().filter(|at| Some(*at) != not).collect();
        let choice = if others.is_empty() { &able } else { &others };
        let new = choice[io.random.usize(..choice.len())];
        self.term += 1;
        self.ending.clear();
        self.ends_at = None;
        self.catch_up(io, new, self.log.len());
        for at in able {
            let member = &mut self.members[at];
            (member.term, member.leader, member.lessor) = (self.term, None, None);
            member.lonely_since = io.now;
            if at != new {
                self.within(io, 1..20, Timer::Hear(at));
            }
        }
        self.leader = Some(new);
        self.members[new].lead(io.now);
        self.hear(io, new);
        self.look_at_leases();
        self.decide_inherited(io);
    }

    pub(super) fn hear(&mut self, io: &mut Io<'_>, at: Host) {
        let (Some(leader), true) = (self.leader, self.is_served(at)) else {
            return;
        };
        let member = &mut self.members[at];
        let is_new = (member.leader, member.term) != (self.leader, self.term);
        (member.leader, member.term) = (self.leader, self.term);
        if at != leader {
            member.lessor = None;
        }
        if is_new {
            self.refuse_reads(io, at);
        }
        self.catch_up(io, at, self.log.len());
    }

    pub(super) fn be_lonely(&mut self, io: &mut Io<'_>, at: Host) {
        if !self.members[at].health.is_at_work() || self.is_served(at) {
            return;
        }
        let member = &mut self.members[at];
        (member.leader, member.lessor) = (None, None);
        member.lonely_since = io.now;
        if self.leader == Some(at) {
            self.leader = None;
        }
        self.within(io, 3000..4000, Timer::EndStreams(at));
        self.settle(io);
    }

    /// Whether a member has been without a leader for so long that it ends its streams.
    pub(super) fn is_long_lonely(&self, at: Host) -> bool {
        let member = &self.members[at];
        let is_long = self.now.saturating_sub(member.lonely_since) >= STREAMS_LAST;
        member.health.is_at_work() && member.leader.is_none() && is_long
    }
}
