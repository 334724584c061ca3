//! What the members agree on, and how leases end.

use std::sync::Arc;
use std::time::Duration;

use crosslock_world::service::{Host, Io};

use super::request::Command;
use super::{Etcd, Timer};

/// What was agreed on, in its order: each has the number of the request that it answers.
pub(super) type Log = Vec<(u64, Arc<Command>)>;

/// How often a leader looks for leases whose time is over.
const ROUND: Duration = Duration::from_millis(500);

impl Etcd {
    /// Has the leader that there is decide a command.
    pub(super) fn propose(&mut self, io: &mut Io<'_>, number: u64, command: Command) {
        self.proposals.insert(number, Arc::new(command));
        self.within(io, 1..5, Timer::Decide(number));
    }

    /// Decides it, unless the leader is lost: then it waits for that one, or for the next.
    pub(super) fn decide(&mut self, io: &mut Io<'_>, number: u64) {
        if !self.is_healthy() {
            return;
        }
        if let Some(command) = self.proposals.remove(&number) {
            self.agree(io, number, command);
        }
    }

    /// Has what waits decided by the leader that has come back.
    pub(super) fn decide_soon(&mut self, io: &mut Io<'_>) {
        let numbers: Vec<_> = self.proposals.keys().copied().collect();
        for number in numbers {
            self.within(io, 1..5, Timer::Decide(number));
        }
    }

    /// A new leader has what the one before has told it of, and decides that first. What else was under way is lost.
    pub(super) fn decide_inherited(&mut self, io: &mut Io<'_>) {
        for (number, command) in std::mem::take(&mut self.proposals) {
            if io.random.bool() {
                self.agree(io, number, command);
            }
        }
    }

    pub(super) fn agree(&mut self, io: &mut Io<'_>, number: u64, command: Arc<Command>) {
        self.log.push((number, command));
        let end = self.log.len();
        for at in 0..self.members.len() {
            if self.leader == Some(at) {
                self.catch_up(io, at, end);
            } else {
                // Most are told with the next message, and some by the next heartbeat.
                let lag = if io.random.u8(..20) == 0 {
                    1..100
                } else {
                    0..3
                };
                self.within(io, lag, Timer::Apply(at, end));
            }
        }
    }

    pub(super) fn apply(&mut self, io: &mut Io<'_>, at: Host, end: usize) {
        if self.leader.is_some_and(|leader| self.reaches(at, leader)) {
            self.catch_up(io, at, end);
        }
    }

    /// Carries out at a member what it doesn't have yet, and answers what waits for that.
    pub(super) fn catch_up(&mut self, io: &mut Io<'_>, at: Host, end: usize) {
        while self.members[at].applied < end {
            let (number, command) = self.log[self.members[at].applied].clone();
            let answer = self.members[at].apply(&command, io.now);
            if self.leader == Some(at) {
                self.watch_leases(&command);
            }
            self.tell(io, at);
            self.decided(io, at, number, answer);
        }
        self.look_at_reads(io, at);
    }

    fn watch_leases(&mut self, command: &Command) {
        match command {
            Command::Grant(..) => self.look_at_leases(),
            Command::Revoke(id) => _ = self.ending.remove(id),
            _ => {}
        }
    }

    /// The leases of the leader, and when each is over.
    fn lessor(&self) -> impl Iterator<Item = (&i64, &Duration)> {
        let leader = self.leader.map(|leader| &self.members[leader]);
        leader
            .into_iter()
            .flat_map(|leader| leader.lessor.iter().flatten())
    }

    /// Has leases looked at in the first round after one of them is over.
    pub(super) fn look_at_leases(&mut self) {
        let lasting = self.lessor();
        let lasting = lasting.filter(|(id, _)| !self.ending.contains(id));
        let Some(first) = lasting.map(|(_, end)| *end).min() else {
            return;
        };
        let rounds = first.as_nanos().div_ceil(ROUND.as_nanos());
        let at = ROUND * u32::try_from(rounds).unwrap_or(u32::MAX);
        if self.ends_at.is_none_or(|before| at < before) {
            self.ends_at = Some(at);
            self.after(at.saturating_sub(self.now), Timer::EndLeases);
        }
    }

    pub(super) fn end_leases(&mut self, io: &mut Io<'_>) {
        self.ends_at = None;
        let is_healthy = self.is_healthy();
        let over = self.lessor();
        let over = over.filter(|(_, end)| is_healthy && **end <= io.now);
        let over: Vec<_> = over.map(|(id, _)| *id).collect();
        for id in over {
            if self.ending.insert(id) {
                let number = self.number();
                self.propose(io, number, Command::Revoke(id));
            }
        }
        if is_healthy {
            self.look_at_leases();
        } else if self.leader.is_some() {
            self.ends_at = Some(self.now + ROUND);
            self.after(ROUND, Timer::EndLeases);
        }
    }
}
