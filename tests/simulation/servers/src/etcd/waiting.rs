//! Requests that wait: for a leader, for what it decides, or for what a member hasn't carried out yet.

use std::time::Duration;

use crosslock_world::service::{Connection, Host, Io};
use serde_json::{Value, json};

use super::http::{
    self, INVALID, PRECONDITION, Question, Refusal, UNAUTHENTICATED, UNAVAILABLE, UNKNOWN,
};
use super::members::TOKEN_LASTS;
use super::request::{Command, Request};
use super::store::header;
use super::{Etcd, Timer, letters};

pub(super) struct Waiting {
    pub(super) at: Host,
    pub(super) to: Connection,
    pub(super) since: Duration,
    /// Whether it is answered by a stream.
    is_stream: bool,
    stage: Stage,
    /// What the member knew when it was asked.
    pub(super) header: Value,
}

pub(super) enum Stage {
    /// It has to be sent to the leader.
    Unsent(Command),
    /// The leader was sent it, or would have been.
    Sent,
    /// It has to be known what the leader has decided.
    Read(Request),
    /// So many entries have to be carried out first.
    ReadAt(usize, Request),
    /// The leader has to be asked for a lease.
    KeepAlive(i64),
    TimeToLive(i64, bool),
}

/// How long a member waits.
const PATIENCE: Duration = Duration::from_secs(7);
const AGAIN: Duration = Duration::from_millis(10);
/// A version without known defects.
const VERSION: &str = "3.4.42";

impl Etcd {
    /// Answers a request, or has it wait.
    pub(super) fn ask(
        &mut self,
        io: &mut Io<'_>,
        (at, to): (Host, Connection),
        request: Request,
        question: &Question,
    ) {
        if let Err(why) = self.let_in(at, &request, question) {
            return match Request::is_stream(&question.path) {
                true => self.send(io, to, http::no_stream(&why)),
                false => self.send(io, to, http::answer(&Err(why))),
            };
        }
        let stage = match request {
            Request::Status => return self.send_answer(io, (at, to), Ok(self.status(at))),
            Request::Leases => return self.send_answer(io, (at, to), Ok(self.leases(at))),
            Request::Watch(creates) => return self.watch(io, (at, to), creates, question),
            Request::Login(..) => Stage::Unsent(Command::Token(letters(io))),
            Request::Write(Command::Grant { id: 0, ttl }) => Stage::Unsent(Command::Grant {
                id: io.random.i64(1..),
                ttl,
            }),
            Request::Write(command) => Stage::Unsent(command),
            Request::KeepAlive(id) => Stage::KeepAlive(id),
            Request::TimeToLive(id, keys) => Stage::TimeToLive(id, keys),
            read if read.is_serializable() => {
                let answer = self.read(at, &read);
                return self.send_answer(io, (at, to), answer);
            }
            read => Stage::Read(read),
        };
        let waiting = Waiting {
            at,
            to,
            since: io.now,
            is_stream: Request::is_stream(&question.path),
            stage,
            header: self.header(at),
        };
        let number = self.number();
        self.waiting.insert(number, waiting);
        self.within(io, 0..2, Timer::Look(number));
        self.after(PATIENCE, Timer::Look(number));
    }

    /// Refuses whoever has no right to ask, where users have to log in.
    fn let_in(&mut self, at: Host, request: &Request, question: &Question) -> Result<(), Refusal> {
        let Some(user) = &self.user else {
            return match request {
                Request::Login(..) => {
                    Err(Refusal::new(PRECONDITION, "authentication is not enabled"))
                }
                _ => Ok(()),
            };
        };
        match request {
            Request::Login(name, password) if (name, password) == (&user.0, &user.1) => {
                return Ok(());
            }
            Request::Login(..) => {
                let text = "authentication failed, invalid user ID or password";
                return Err(Refusal::new(INVALID, text));
            }
            // Nobody has to log in for these; a watch is answered by its own words.
            Request::Status | Request::Watch(_) | Request::Leases => return Ok(()),
            Request::KeepAlive(_) | Request::TimeToLive(..) => return Ok(()),
            request if request.names_no_key() && question.token.is_none() => return Ok(()),
            _ => {}
        }
        self.know(at, question.token.as_deref())
    }

    /// Whether a member knows a token, which lasts longer then.
    pub(super) fn know(&mut self, at: Host, token: Option<&str>) -> Result<(), Refusal> {
        let Some(token) = token else {
            return Err(Refusal::new(INVALID, "user name is empty"));
        };
        let lasts = self.members[at].tokens.get_mut(token);
        let Some(until) = lasts.filter(|until| self.now < **until) else {
            return Err(Refusal::new(UNAUTHENTICATED, "invalid auth token"));
        };
        *until = self.now + TOKEN_LASTS;
        Ok(())
    }

    /// Goes on with a request that waits, if it can.
    pub(super) fn look(&mut self, io: &mut Io<'_>, number: u64) {
        let Some(waiting) = self.waiting.get_mut(&number) else {
            return;
        };
        let (at, leader) = (waiting.at, self.members[waiting.at].leader);
        if !self.members[at].is_running() {
            return;
        }
        if io.now >= waiting.since + PATIENCE {
            let why = waiting.stage.timeout();
            return self.finish(io, number, Err(why));
        }
        // It is put back when it has to wait on.
        match std::mem::replace(&mut waiting.stage, Stage::Sent) {
            Stage::Sent => {}
            Stage::Unsent(command) => self.send_on(io, number, leader, command),
            Stage::Read(request) => {
                match leader.filter(|_| leader == self.leader && self.is_healthy()) {
                    Some(leader) if self.reaches(at, leader) => {
                        self.back(number, Stage::ReadAt(self.log.end(), request));
                        self.look(io, number);
                    }
                    _ => self.again(number, Stage::Read(request)),
                }
            }
            Stage::ReadAt(end, request) if self.members[at].applied >= end => {
                let answer = self.read(at, &request);
                self.finish(io, number, answer);
            }
            stage @ Stage::ReadAt(..) => self.back(number, stage),
            Stage::KeepAlive(id) => self.keep_alive(io, number, id),
            Stage::TimeToLive(id, keys) => self.time_to_live(io, number, id, keys),
        }
    }

    fn back(&mut self, number: u64, stage: Stage) {
        if let Some(waiting) = self.waiting.get_mut(&number) {
            waiting.stage = stage;
        }
    }

    pub(super) fn again(&mut self, number: u64, stage: Stage) {
        self.back(number, stage);
        self.after(AGAIN, Timer::Look(number));
    }

    /// What is sent to a leader that doesn't lead any more is lost, and so is what doesn't reach it.
    fn send_on(&mut self, io: &mut Io<'_>, number: u64, leader: Option<Host>, command: Command) {
        let at = self.waiting[&number].at;
        match leader {
            None => self.again(number, Stage::Unsent(command)),
            Some(leader) if self.leader == Some(leader) && self.will_reach(at, leader) => {
                self.propose(io, number, command);
            }
            Some(_) => {}
        }
    }

    /// A member has carried out what it was asked for.
    pub(super) fn decided(
        &mut self,
        io: &mut Io<'_>,
        at: Host,
        number: u64,
        answer: Result<Value, Refusal>,
    ) {
        if self
            .waiting
            .get(&number)
            .is_some_and(|waiting| waiting.at == at)
        {
            self.finish(io, number, answer);
        }
    }

    pub(super) fn finish(&mut self, io: &mut Io<'_>, number: u64, answer: Result<Value, Refusal>) {
        let Some(waiting) = self.waiting.remove(&number) else {
            return;
        };
        match answer {
            Err(why) if waiting.is_stream => {
                self.send(io, waiting.to, http::no_stream(&why));
                self.serve(io, waiting.to);
            }
            answer => self.send_answer(io, (waiting.at, waiting.to), answer),
        }
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
            let why = Refusal::new(UNAVAILABLE, "leader changed");
            self.finish(io, number, Err(why));
        }
    }

    fn numbers(&self, at: Host, is_such: impl Fn(&Stage) -> bool) -> Vec<u64> {
        let all = self.waiting.iter();
        let such = all.filter(|(_, waiting)| waiting.at == at && is_such(&waiting.stage));
        such.map(|(number, _)| *number).collect()
    }

    fn read(&mut self, at: Host, request: &Request) -> Result<Value, Refusal> {
        let state = &mut self.members[at].state;
        match request {
            Request::Range(range) => state.range(range),
            Request::Read(txn) => state.transact(txn),
            _ => Err(Refusal::new(UNKNOWN, "no read")),
        }
    }

    fn status(&self, at: Host) -> Value {
        let member = &self.members[at];
        // Any sizes: about as much as a new database has.
        let (size, entries) = (20_480 + 100 * member.applied, member.applied + 4);
        let mut answer = json!({
            "header": header(member.state.revision), "version": VERSION,
            "dbSize": size.to_string(), "dbSizeInUse": size.to_string(),
            "raftIndex": entries.to_string(), "raftAppliedIndex": entries.to_string(),
            "raftTerm": member.term.to_string(),
        });
        match member.leader {
            Some(leader) => answer["leader"] = self.members[leader].id.to_string().into(),
            None => answer["errors"] = json!(["etcdserver: no leader"]),
        }
        answer
    }
}

impl Stage {
    /// What it is answered when it has waited for too long.
    fn timeout(&self) -> Refusal {
        match self {
            Stage::Unsent(_) => Refusal {
                code: UNKNOWN,
                text: "context deadline exceeded".to_owned(),
            },
            _ => Refusal::new(UNAVAILABLE, "request timed out"),
        }
    }
}
