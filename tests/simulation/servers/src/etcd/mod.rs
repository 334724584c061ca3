//! A simulated etcd: an ensemble of one or three members, as clients of its JSON gateway see it.
//!
//! There is one log for all: what is agreed on is appended to it, and each member carries it out in its time. So what
//! a member answers from its own state may be of the past. The messages of Raft aren't simulated, only what comes of
//! them: a leader that reaches a majority decides what is proposed, after some milliseconds. When it is lost, the
//! others have another after a second or so. What was under way then is decided by the next leader, or never.
//!
//! A leader that was paused or cut off goes on believing in itself for a while: it says of leases that it keeps them
//! alive, which its successor lets run out. It ends none, as etcd since 3.4.31 and 3.5.13. A new leader gives all
//! leases their whole time once more. Members start with what they had. The clocks of hosts don't matter.
//!
//! The library never asks for the past, so none is kept, and compaction can't be noticed. Not simulated: rights,
//! learners, alarms, the size of a database, and members that disturb a leader when they come back.

mod http;
mod log;
mod logins;
mod members;
mod request;
mod store;
mod strangers;
mod waiting;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crosslock_world::service::{Connection, Fault, Host, Io, Service};
use serde_json::{Value, json};

use self::http::{Question, Refusal};
use self::log::Log;
use self::logins::Tokens;
use self::members::Member;
use self::request::{Command, Create, Request};
use self::waiting::Waiting;
use crate::short;

/// An ensemble.
#[derive(Default)]
pub struct Etcd {
    cluster: u64,
    members: Vec<Member>,
    /// Who leads in truth, if anybody does.
    leader: Option<Host>,
    term: u64,
    log: Log,
    /// What a leader was asked to decide.
    proposals: BTreeMap<u64, Arc<Command>>,
    /// The leases that are being ended because their time is over.
    ending: BTreeSet<i64>,
    /// When leases are looked at next.
    ends_at: Option<Duration>,
    clients: BTreeMap<Connection, Client>,
    /// `None`: nobody has to log in.
    tokens: Option<Tokens>,
    waiting: BTreeMap<u64, Waiting>,
    timers: BTreeMap<(Duration, u64), Timer>,
    election_is_due: bool,
    /// The number that was given out last, to a request or a timer.
    last_number: u64,
    has_begun: bool,
    now: Duration,
}

/// A connection to a member.
#[derive(Default)]
struct Client {
    at: Host,
    input: Vec<u8>,
    /// Whether a request of it has no answer yet.
    is_busy: bool,
    /// What it asks by is to be told.
    watches: Vec<Create>,
}

/// What is to be done at a time.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// A proposal is decided.
    Decide(u64),
    /// A member learns that the log has so many entries.
    Apply(Host, usize),
    /// A request that waits is looked at.
    Look(u64),
    Elect,
    /// A member hears of the leader that there is.
    Hear(Host),
    /// A member notices that it has none.
    Lonely(Host),
    /// A member without a leader ends the streams that demand one.
    EndStreams(Host),
    EndLeases,
}

impl Etcd {
    /// An ensemble of so many members, which lets everyone in.
    ///
    /// # Panics
    ///
    /// If that isn't an odd number.
    pub fn new(members: usize) -> Self {
        assert!(members % 2 == 1, "an odd number of members");
        Self {
            members: (0..members).map(|_| Member::new()).collect(),
            term: 1,
            ..Self::default()
        }
    }

    /// Does what is due, then `act`, and says when there is more to do.
    fn during(&mut self, io: &mut Io<'_>, act: impl FnOnce(&mut Self, &mut Io<'_>)) {
        self.now = io.now;
        if !std::mem::replace(&mut self.has_begun, true) {
            self.found(io);
            self.elect(io, None);
            (0..self.members.len()).for_each(|at| self.hear(io, at));
        }
        self.run(io);
        act(self, io);
        self.run(io);
        if let Some(((at, _), _)) = self.timers.first_key_value() {
            io.wake_at(*at);
        }
    }

    fn run(&mut self, io: &mut Io<'_>) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > io.now {
                return;
            }
            match entry.remove() {
                Timer::Decide(number) => self.decide(io, number),
                Timer::Apply(at, end) => self.apply(io, at, end),
                Timer::Look(number) => self.look(io, number),
                Timer::Elect => {
                    self.election_is_due = false;
                    self.hold_election(io);
                }
                Timer::Hear(at) => self.hear(io, at),
                Timer::Lonely(at) => self.be_lonely(io, at),
                Timer::EndStreams(at) => self.end_streams(io, at),
                Timer::EndLeases => self.end_leases(io),
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn after(&mut self, time: Duration, timer: Timer) {
        let number = self.number();
        self.timers.insert((self.now + time, number), timer);
    }

    /// The same after a time between these milliseconds.
    fn within(&mut self, io: &mut Io<'_>, millis: std::ops::Range<u64>, timer: Timer) {
        let micros = io.random.u64(millis.start * 1000..millis.end * 1000);
        self.after(Duration::from_micros(micros), timer);
    }

    /// Begins with the requests that have come on a connection, as long as each is answered at once.
    fn serve(&mut self, io: &mut Io<'_>, connection: Connection) {
        while let Some(client) = self.clients.get_mut(&connection) {
            if client.is_busy {
                return;
            }
            match http::first(&client.input) {
                Ok(None) => return,
                Ok(Some((question, length))) => {
                    client.input.drain(..length);
                    client.is_busy = true;
                    self.begin(io, connection, &question);
                }
                Err(()) => {
                    self.clients.remove(&connection);
                    io.close(connection);
                }
            }
        }
    }

    fn begin(&mut self, io: &mut Io<'_>, connection: Connection, question: &Question) {
        let at = self.clients[&connection].at;
        if question.path == "/v3/auth/authenticate" {
            let answer = self.log_in(at);
            return self.send_answer(io, (at, connection), answer);
        }
        let known = self.check_token(at, question);
        let is_lonely = question.wants_leader && self.members[at].leader.is_none();
        let request = known.and_then(|()| Request::parse(&question.path, &question.body));
        let request = match request {
            Ok(_) if is_lonely => Err(Refusal::NO_LEADER),
            request => request,
        };
        match request {
            Err(why) if question.path == "/v3/watch" => {
                self.send(io, connection, http::no_stream(&why));
            }
            Err(why) => self.send(io, connection, http::answer(&Err(why))),
            Ok(request) => self.ask(io, (at, connection), request),
        }
    }

    /// The last bytes of an answer.
    fn send(&mut self, io: &mut Io<'_>, connection: Connection, bytes: Vec<u8>) {
        io.send(connection, bytes);
        let Some(client) = self.clients.get_mut(&connection) else {
            return;
        };
        client.is_busy = false;
        client.watches.clear();
    }

    /// An answer of a member, whose header has the revision.
    fn send_answer(
        &mut self,
        io: &mut Io<'_>,
        (at, to): (Host, Connection),
        answer: Result<Value, Refusal>,
    ) {
        let answer = answer.map(|mut answer| {
            self.fill(at, &mut answer);
            answer
        });
        self.send(io, to, http::answer(&answer));
        self.serve(io, to);
    }

    /// Adds to the header who answers, and in which term.
    fn fill(&self, at: Host, answer: &mut Value) {
        let member = &self.members[at];
        answer["header"]["cluster_id"] = self.cluster.to_string().into();
        answer["header"]["member_id"] = member.id.to_string().into();
        answer["header"]["raft_term"] = member.term.to_string().into();
    }

    /// The header of what a member says by itself.
    fn header(&self, at: Host) -> Value {
        let mut answer = json!({ "header": store::header(self.members[at].state.revision) });
        self.fill(at, &mut answer);
        answer["header"].take()
    }
}

impl Service for Etcd {
    fn hosts(&self) -> usize {
        self.members.len()
    }

    fn connected(&mut self, io: &mut Io<'_>, at: Host, connection: Connection) {
        let client = Client {
            at,
            ..Client::default()
        };
        self.during(io, |etcd, _| _ = etcd.clients.insert(connection, client));
    }

    fn received(&mut self, io: &mut Io<'_>, _at: Host, connection: Connection, bytes: &[u8]) {
        self.during(io, |etcd, io| {
            if let Some(client) = etcd.clients.get_mut(&connection) {
                client.input.extend_from_slice(bytes);
                etcd.serve(io, connection);
            }
        });
    }

    fn closed(&mut self, io: &mut Io<'_>, _at: Host, connection: Connection) {
        self.during(io, |etcd, _| {
            etcd.clients.remove(&connection);
            etcd.waiting.retain(|_, waiting| waiting.to != connection);
        });
    }

    fn woken(&mut self, io: &mut Io<'_>) {
        self.during(io, |_, _| {});
    }

    fn fault(&mut self, io: &mut Io<'_>, at: Host, fault: Fault) {
        self.during(io, |etcd, io| match fault {
            Fault::Own(0) => etcd.elect(io, etcd.leader),
            Fault::Own(_) => etcd.let_strangers_in(io),
            fault => etcd.suffer(io, at, fault),
        });
    }

    fn own_faults(&self) -> &'static [&'static str] {
        &["election", "strangers"]
    }

    fn lasting(&self, now: Duration) -> Vec<(String, Duration)> {
        let leader = self.leader.filter(|_| self.is_healthy());
        let Some(member) = leader.map(|leader| &self.members[leader]) else {
            return Vec::new();
        };
        let left = |lease: i64| {
            let ends = member.lessor.as_ref()?.get(&lease)?;
            Some(ends.saturating_sub(now))
        };
        let named = |one: &store::KeyValue| {
            let key = String::from_utf8_lossy(&one.key).into_owned();
            Some((key, left(one.lease)?))
        };
        member.state.all().filter_map(named).collect()
    }

    fn contents(&self) -> Vec<String> {
        let by_progress = |at: &Host| (self.leader == Some(*at), self.members[*at].applied);
        let Some(best) = (0..self.members.len()).max_by_key(by_progress) else {
            return Vec::new();
        };
        let member = &self.members[best];
        let line = |one: &store::KeyValue| {
            let (key, value) = (String::from_utf8_lossy(&one.key), short(&one.value));
            let lease = match one.lease {
                0 => "no lease".to_owned(),
                id => format!("lease {id:x}"),
            };
            format!("{key} {value:?} {lease}")
        };
        let put_out = member.state.put_out.iter();
        let put_out =
            put_out.map(|key| format!("put out of line: {}", String::from_utf8_lossy(key)));
        member.state.all().map(line).chain(put_out).collect()
    }
}
