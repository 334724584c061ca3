//! Requests that wait: for a leader, for what it decides, for what a member hasn't carried out yet, or for what the
//! leader says of a lease.

use std::time::Duration;

use crosslock_world::service::{Connection, Host, Io};
use serde_json::{Map, Value, json};

use super::http::{self, Refusal};
use super::request::{Command, Request, Txn};
use super::store::{header, put_number};
use super::{Etcd, Timer};

pub(super) struct Waiting {
    pub(super) at: Host,
    pub(super) to: Connection,
    since: Duration,
    stage: Stage,
    /// What the member knew when it was asked.
    header: Value,
}

enum Stage {
    /// It has to be sent to the leader.
    Unsent(Command),
    /// The leader was sent it, or would have been.
    Sent,
    /// It has to be known what the leader has decided.
    Read(Txn),
    /// So many entries have to be carried out first.
    ReadAt(usize, Txn),
    /// The leader has to be asked for a lease.
    KeepAlive(i64),
    TimeToLive(i64),
}

/// What a lease is asked for.
enum Told {
    Alive(Duration),
    Gone,
    /// It can't be told yet.
    Nothing,
}

/// How long a member waits, and for a leader to ask for a lease.
const PATIENCE: Duration = Duration::from_secs(7);
const LEADER_WITHIN: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(10);
/// A version without known defects.
const VERSION: &str = "3.4.42";

impl Etcd {
    /// Answers a request, or has it wait.
    pub(super) fn ask(&mut self, io: &mut Io<'_>, (at, to): (Host, Connection), request: Request) {
        let stage = match request {
            Request::Status => {
                let status = self.status(at);
                return self.send_answer(io, (at, to), Ok(status));
            }
            Request::Watch(creates) => return self.watch(io, (at, to), creates),
            // One that reads nothing is answered from what the member has.
            Request::Read(txn) if txn.success.is_empty() && txn.failure.is_empty() => {
                let answer = self.members[at].state.transact(&txn);
                return self.send_answer(io, (at, to), answer);
            }
            Request::Read(txn) => Stage::Read(txn),
            Request::Write(command) => Stage::Unsent(command),
            Request::KeepAlive(id) => Stage::KeepAlive(id),
            Request::TimeToLive(id) => Stage::TimeToLive(id),
        };
        let waiting = Waiting {
            at,
            to,
            since: io.now,
            stage,
            header: self.header(at),
        };
        let number = self.number();
        self.waiting.insert(number, waiting);
        self.within(io, 0..2, Timer::Look(number));
        self.after(PATIENCE, Timer::Look(number));
    }

    /// Goes on with a request that waits, if it can.
    pub(super) fn look(&mut self, io: &mut Io<'_>, number: u64) {
        let Some(waiting) = self.waiting.get_mut(&number) else {
            return;
        };
        let (at, leader) = (waiting.at, self.members[waiting.at].leader);
        if !self.members[at].health.is_at_work() {
            return;
        }
        if io.now >= waiting.since + PATIENCE {
            let why = match waiting.stage {
                Stage::Unsent(_) => Refusal::OVERDUE,
                _ => Refusal::TIMED_OUT,
            };
            return self.finish(io, number, Err(why));
        }
        // It is put back when it has to wait on.
        match std::mem::replace(&mut waiting.stage, Stage::Sent) {
            Stage::Sent => {}
            Stage::Unsent(command) => match leader {
                None => self.again(number, Stage::Unsent(command)),
                // What is sent to one that doesn't lead any more is lost, and so is what doesn't reach it.
                Some(leader) if self.leader == Some(leader) && self.will_reach(at, leader) => {
                    self.propose(io, number, command);
                }
                Some(_) => {}
            },
            Stage::Read(txn) => match leader.filter(|_| leader == self.leader) {
                Some(leader) if self.is_healthy() && self.reaches(at, leader) => {
                    self.back(number, Stage::ReadAt(self.log.len(), txn));
                    self.look(io, number);
                }
                _ => self.again(number, Stage::Read(txn)),
            },
            Stage::ReadAt(end, txn) if self.members[at].applied >= end => {
                let answer = self.members[at].state.transact(&txn);
                self.finish(io, number, answer);
            }
            stage @ Stage::ReadAt(..) => self.back(number, stage),
            Stage::KeepAlive(id) => self.keep_alive(io, number, id),
            Stage::TimeToLive(id) => self.time_to_live(io, number, id),
        }
    }

    fn back(&mut self, number: u64, stage: Stage) {
        if let Some(waiting) = self.waiting.get_mut(&number) {
            waiting.stage = stage;
        }
    }

    fn again(&mut self, number: u64, stage: Stage) {
        self.back(number, stage);
        self.after(AGAIN, Timer::Look(number));
    }

    /// A member has carried out what it was asked for.
    pub(super) fn decided(
        &mut self,
        io: &mut Io<'_>,
        at: Host,
        number: u64,
        answer: Result<Value, Refusal>,
    ) {
        let waiting = self.waiting.get(&number);
        if waiting.is_some_and(|waiting| waiting.at == at) {
            self.finish(io, number, answer);
        }
    }

    fn finish(&mut self, io: &mut Io<'_>, number: u64, answer: Result<Value, Refusal>) {
        let Some(waiting) = self.waiting.remove(&number) else {
            return;
        };
        self.send_answer(io, (waiting.at, waiting.to), answer);
    }

    pub(super) fn look_at_reads(&mut self, io: &mut Io<'_>, at: Host) {
        let ready = self.numbers(at, |stage| matches!(stage, Stage::ReadAt(..)));
        ready.into_iter().for_each(|number| self.look(io, number));
    }

    pub(super) fn look_at_all(&mut self, at: Host) {
        for number in self.numbers(at, |_| true) {
            self.after(Duration::ZERO, Timer::Look(number));
        }
    }

    /// A member has another leader than the one that it has asked.
    pub(super) fn refuse_reads(&mut self, io: &mut Io<'_>, at: Host) {
        for number in self.numbers(at, |stage| matches!(stage, Stage::Read(_))) {
            self.finish(io, number, Err(Refusal::LEADER_CHANGED));
        }
    }

    fn numbers(&self, at: Host, is_such: impl Fn(&Stage) -> bool) -> Vec<u64> {
        let all = self.waiting.iter();
        let such = all.filter(|(_, waiting)| waiting.at == at && is_such(&waiting.stage));
        such.map(|(number, _)| *number).collect()
    }

    fn status(&self, at: Host) -> Value {
        let member = &self.members[at];
        let leader = member.leader.map(|leader| self.members[leader].id);
        json!({
            "header": header(member.state.revision), "version": VERSION,
            "raftTerm": member.term.to_string(), "leader": leader.unwrap_or(0).to_string(),
        })
    }

    /// Asks for a lease whom a member takes for the leader. One whose time is over is answered for when it has ended.
    fn told(&self, at: Host, id: i64) -> (Host, Told) {
        let leader = self.members[at].leader.unwrap_or(at);
        let lessor = self.members[leader].lessor.as_ref();
        let Some(lessor) = lessor.filter(|_| self.reaches(at, leader)) else {
            return (at, Told::Nothing);
        };
        let told = match lessor.get(&id) {
            None => Told::Gone,
            Some(end) if *end <= self.now => Told::Nothing,
            Some(end) => Told::Alive(*end - self.now),
        };
        (leader, told)
    }

    /// Waits for a leader, but not for long.
    fn lessor_again(&mut self, io: &mut Io<'_>, number: u64, stage: Stage) {
        let waiting = &self.waiting[&number];
        let is_long = io.now >= waiting.since + LEADER_WITHIN;
        match self.members[waiting.at].leader.is_none() && is_long {
            true => self.finish(io, number, Err(Refusal::NO_LEADER)),
            false => self.again(number, stage),
        }
    }

    fn keep_alive(&mut self, io: &mut Io<'_>, number: u64, id: i64) {
        let Waiting { at, to, .. } = self.waiting[&number];
        let ttl = match self.told(at, id) {
            (_, Told::Nothing) => return self.lessor_again(io, number, Stage::KeepAlive(id)),
            (_, Told::Gone) => 0,
            (leader, Told::Alive(_)) => {
                let member = &mut self.members[leader];
                let time = member.ttl_of(id).unwrap_or_default();
                if let Some(lessor) = &mut member.lessor {
                    lessor.insert(id, io.now + time);
                }
                time.as_secs()
            }
        };
        // The header is from before the lease was kept alive, as etcd has it.
        let header = self.waiting.remove(&number).map(|waiting| waiting.header);
        let mut result = Map::new();
        result.insert("header".into(), header.unwrap_or_default());
        result.insert("ID".into(), id.to_string().into());
        put_number(&mut result, "TTL", ttl);
        let message = http::message(&result.into());
        self.send(io, to, [http::STREAM, &message, &http::end(None)].concat());
        self.serve(io, to);
    }

    fn time_to_live(&mut self, io: &mut Io<'_>, number: u64, id: i64) {
        let at = self.waiting[&number].at;
        let (by, left) = match self.told(at, id) {
            (_, Told::Nothing) => return self.lessor_again(io, number, Stage::TimeToLive(id)),
            (_, Told::Gone) => (at, None),
            (leader, Told::Alive(left)) => (leader, Some(left.as_secs())),
        };
        let state = &self.members[by].state;
        let mut answer = Map::new();
        answer.insert("header".into(), header(state.revision));
        answer.insert("ID".into(), id.to_string().into());
        match left {
            None => _ = answer.insert("TTL".into(), "-1".into()),
            Some(left) => put_number(&mut answer, "TTL", left),
        }
        if let Some(lease) = state.leases.get(&id).filter(|_| left.is_some()) {
            put_number(&mut answer, "grantedTTL", lease.ttl);
        }
        self.finish(io, number, Ok(answer.into()));
    }
}
