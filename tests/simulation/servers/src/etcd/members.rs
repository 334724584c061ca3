//! Members: what happens to them, and who leads.

use std::collections::BTreeMap;
use std::time::Duration;

use crosslock_world::service::{Fault, Host, Io};
use serde_json::Value;

use super::http::Refusal;
use super::request::Command;
use super::store::State;
use super::{Etcd, Timer};

pub(super) struct Member {
    pub(super) id: u64,
    is_up: bool,
    is_paused: bool,
    is_cut: bool,
    /// Whether it has lost its data, and hasn't got another's yet.
    pub(super) is_empty: bool,
    pub(super) term: u64,
    /// Whom it takes for the leader.
    pub(super) leader: Option<Host>,
    lonely_since: Duration,
    pub(super) state: State,
    /// How many entries of the log it has carried out.
    pub(super) applied: usize,
    /// When each lease is over, at one that takes itself for the leader.
    pub(super) lessor: Option<BTreeMap<i64, Duration>>,
    /// The tokens that it knows, and when it forgets them.
    pub(super) tokens: BTreeMap<String, Duration>,
}

/// After that time without a leader streams end.
const STREAMS_LAST: Duration = Duration::from_secs(3);
/// What a new leader adds to the time of leases: that in which it was elected.
const EXTENSION: Duration = Duration::from_secs(1);
/// How long a token lasts that isn't used.
pub(super) const TOKEN_LASTS: Duration = Duration::from_secs(300);

impl Member {
    pub(super) fn new() -> Self {
        Self {
            id: 0,
            is_up: true,
            is_paused: false,
            is_cut: false,
            is_empty: false,
            term: 1,
            leader: None,
            lonely_since: Duration::ZERO,
            state: State::new(),
            applied: 0,
            lessor: None,
            tokens: BTreeMap::new(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_up && !self.is_paused
    }

    /// Carries out what was agreed on.
    pub(super) fn apply(&mut self, command: &Command, now: Duration) -> Result<Value, Refusal> {
        self.applied += 1;
        let answer = self.state.apply(command)?;
        match command {
            Command::Grant { id, .. } => {
                let time = self.ttl_of(*id);
                if let (Some(lessor), Some(time)) = (&mut self.lessor, time) {
                    lessor.insert(*id, now + time);
                }
            }
            Command::Revoke(id) => _ = self.lessor.as_mut().and_then(|lessor| lessor.remove(id)),
            Command::Token(token) => _ = self.tokens.insert(token.clone(), now + TOKEN_LASTS),
            _ => {}
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
        let is_fine = |at: Host| self.members[at].is_running() && !self.members[at].is_cut;
        match from == to {
            true => self.members[from].is_running(),
            false => is_fine(from) && is_fine(to),
        }
    }

    /// Whether a member reaches another, or will when that one goes on.
    pub(super) fn will_reach(&self, from: Host, to: Host) -> bool {
        let target = &self.members[to];
        let is_on_its_way = target.is_up && !target.is_cut && !self.members[from].is_cut;
        self.reaches(from, to) || (is_on_its_way && target.is_paused)
    }

    fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Whether there is a leader that can decide.
    pub(super) fn is_healthy(&self) -> bool {
        self.leader.is_some_and(|leader| {
            let hosts = 0..self.members.len();
            let has = |at: &Host| self.reaches(leader, *at) && !self.members[*at].is_empty;
            self.members[leader].is_running() && hosts.filter(has).count() >= self.majority()
        })
    }

    pub(super) fn suffer(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        match fault {
            Fault::Kill => self.kill(at),
            Fault::Start { with_data } => self.start(io, at, with_data),
            Fault::Pause => self.members[at].is_paused = true,
            Fault::Resume => {
                self.members[at].is_paused = false;
                self.look_at_all(at);
                if self.members[at].leader.is_none() {
                    self.after(Duration::ZERO, Timer::EndStreams(at));
                }
            }
            Fault::Cut => self.members[at].is_cut = true,
            Fault::Heal => self.members[at].is_cut = false,
            Fault::StepClock { .. } | Fault::Own(_) => {}
        }
        self.settle(io);
    }

    fn kill(&mut self, at: Host) {
        let member = &mut self.members[at];
        (member.is_up, member.is_paused) = (false, false);
        (member.leader, member.lessor) = (None, None);
        member.tokens.clear();
        self.clients.retain(|_, client| client.at != at);
        self.waiting.retain(|_, waiting| waiting.at != at);
        if self.leader == Some(at) {
            self.leader = None;
        }
    }

    fn start(&mut self, io: &mut Io<'_>, at: Host, with_data: bool) {
        let member = &mut self.members[at];
        member.is_up = true;
        member.lonely_since = io.now;
        if with_data {
            return;
        }
        let is_cut = member.is_cut;
        *member = Member {
            id: io.random.u64(1..),
            is_cut,
            is_empty: true,
            ..Member::new()
        };
        if self.members.iter().all(|member| member.is_empty) {
            // It is another ensemble.
            self.found(io);
            self.clear_log();
            self.term = 1;
            self.members
                .iter_mut()
                .for_each(|member| member.is_empty = false);
        }
    }

    /// Sees to it that members notice in their time what has changed between them.
    fn settle(&mut self, io: &mut Io<'_>) {
        let is_healthy = self.is_healthy();
        if is_healthy {
            self.decide_soon(io);
        }
        let mut is_strange = !is_healthy && self.members.iter().any(Member::is_running);
        for at in 0..self.members.len() {
            let member = &self.members[at];
            if !is_healthy || !member.is_running() {
                continue;
            }
            if self.leader.is_some_and(|leader| self.reaches(at, leader)) {
                let is_current = (member.leader, member.term) == (self.leader, self.term);
                if !is_current || member.applied < self.log.end() {
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
            let believes = member.is_running() && member.leader.is_some();
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
            let is_reached = self.members.len() == 1 || !member.is_cut;
            member.is_running() && is_reached && !member.is_empty
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
        self.catch_up(io, new, self.log.end());
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
        if self.members[at].is_empty {
            (self.members[at].state, self.members[at].applied) = (
                self.members[leader].state.clone(),
                self.members[leader].applied,
            );
            self.members[at].is_empty = false;
        }
        let member = &mut self.members[at];
        let is_new = (member.leader, member.term) != (self.leader, self.term);
        (member.leader, member.term) = (self.leader, self.term);
        if at != leader {
            member.lessor = None;
        }
        if is_new {
            self.refuse_reads(io, at);
        }
        self.catch_up(io, at, self.log.end());
    }

    pub(super) fn be_lonely(&mut self, io: &mut Io<'_>, at: Host) {
        if !self.members[at].is_running() || self.is_served(at) {
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
        member.is_running() && member.leader.is_none() && is_long
    }
}
