//! What is done by the leader alone: the order of transactions, and the end of sessions.

use std::time::Duration;

use crosslock_world::service::{Connection, Host, Io};

use super::change::{Action, Transaction};
use super::member::{FromLeader, Leadership, Member, Pending, Role, ToLeader, Tracked, ends_at};
use super::{SWEEPS_EACH, ZooKeeper};

/// How long a message between servers takes at least, in microseconds.
const HOP: u64 = 200;

impl ZooKeeper {
    /// No session has had its number before.
    pub(super) fn next_session(&mut self, at: Host) -> i64 {
        self.sessions += 1;
        let place = i64::try_from(at).expect("a few") + 1;
        place << 56 | self.sessions
    }

    /// Has the leader do what the client has asked for.
    pub(super) fn propose(&mut self, io: &mut Io<'_>, connection: Connection, action: Action) {
        let client = &self.clients[&connection];
        let mut proposal = Transaction::own(client.at, client.session, action);
        proposal.connection = Some(connection);
        self.tell_leader(io, proposal.at, ToLeader::Propose(proposal));
    }

    pub(super) fn tell_leader(&mut self, io: &mut Io<'_>, from: Host, message: ToLeader) {
        match self.members[from].role {
            Role::Looking => {}
            Role::Leading(_) => self.lead(io, from, from, message),
            Role::Following(_) => {
                let queue = &mut self.members[from].to_leader;
                let at = io.now + Duration::from_micros(io.random.u64(HOP..1_000));
                let last = queue.back().map_or(at, |(last, _)| *last);
                queue.push_back((at.max(last), message));
            }
        }
    }

    /// The leader hears of it.
    pub(super) fn lead(&mut self, io: &mut Io<'_>, leader: Host, from: Host, message: ToLeader) {
        let tick = self.tick;
        let Some(leadership) = self.members[leader].leadership() else {
            return;
        };
        match message {
            ToLeader::Propose(proposal) => leadership.take(io, from, proposal, tick),
            ToLeader::Sync(connection) => match leadership.pending.back() {
                Some((at, _)) => {
                    let pending = (*at, Pending::Sync(from, connection));
                    leadership.pending.push_back(pending);
                }
                None => self.send(io, from, FromLeader::Synced(connection)),
            },
            ToLeader::Validate(connection, session, timeout) => {
                let is_valid = leadership.touch(session, timeout, io.now, tick);
                if let Some(tracked) = leadership.sessions.get_mut(&session) {
                    tracked.owner = Some(from);
                }
                if from == leader {
                    return self.welcome(io, connection, is_valid);
                }
                self.send(io, from, FromLeader::Validated(connection, is_valid));
            }
        }
    }

    /// Sends that to a follower, behind what was sent before.
    fn send(&mut self, io: &mut Io<'_>, to: Host, message: FromLeader) {
        // Now and then one is slow.
        let most = if io.random.u8(..20) == 0 {
            50_000
        } else {
            3_000
        };
        let at = io.now + Duration::from_micros(io.random.u64(HOP..most));
        let queue = &mut self.members[to].from_leader;
        let last = queue.back().map_or(at, |(last, _)| *last);
        queue.push_back((at.max(last), message));
    }

    /// A client was heard of.
    pub(super) fn touch(&mut self, io: &Io<'_>, at: Host, session: i64, timeout: i32) {
        let tick = self.tick;
        let member = &mut self.members[at];
        match member.leadership() {
            Some(leadership) => _ = leadership.touch(session, timeout, io.now, tick),
            None => _ = member.touched.insert(session, timeout),
        }
    }

    /// Does what is due at a leader. Returns whether there was anything.
    pub(super) fn tend(&mut self, io: &mut Io<'_>, leader: Host) -> bool {
        let has_majority = self.has_majority(leader);
        let tick = self.tick;
        let Member { tree, role, .. } = &mut self.members[leader];
        let Role::Leading(leadership) = role else {
            return false;
        };
        let now = io.now;
        let is_due = |at: &Duration| *at <= now;
        if has_majority && leadership.pending.front().is_some_and(|(at, _)| is_due(at)) {
            self.commit(io, leader);
        } else if leadership.expires_from <= io.now && leadership.expire(io, leader) {
        } else if is_due(&leadership.pings_at) {
            leadership.pings_at = io.now + tick / 2;
            self.ping(io, leader);
        } else if is_due(&leadership.sweeps_at) {
            leadership.sweeps_at = io.now + SWEEPS_EACH;
            for path in tree.empty_containers() {
                let action = Action::DeleteContainer(path);
                leadership.enqueue(io, Transaction::own(leader, 0, action));
            }
        } else {
            return false;
        }
        true
    }

    /// Followers tell at each ping for which sessions they were given a sign of life.
    fn ping(&mut self, io: &Io<'_>, leader: Host) {
        let tick = self.tick;
        for follower in self.followers(leader) {
            if !self.reaches(leader, follower) {
                continue;
            }
            let touched = std::mem::take(&mut self.members[follower].touched);
            let Some(leadership) = self.members[leader].leadership() else {
                return;
            };
            for (session, timeout) in touched {
                leadership.touch(session, timeout, io.now, tick);
            }
        }
    }

    /// Carries out what is the first to be done.
    pub(super) fn commit(&mut self, io: &mut Io<'_>, leader: Host) {
        let Member { tree, role, .. } = &mut self.members[leader];
        let Role::Leading(leadership) = role else {
            return;
        };
        let mut committed = match leadership.pending.pop_front() {
            None => return,
            Some((_, Pending::Sync(from, connection))) => {
                return self.send(io, from, FromLeader::Synced(connection));
            }
            Some((_, Pending::Proposal(proposal))) => proposal,
        };
        let time = i64::try_from(io.wall(leader).as_millis()).expect("a time of today");
        (committed.zxid, committed.time) = (tree.zxid + 1, time);
        for follower in self.followers(leader) {
            self.send(io, follower, FromLeader::Commit(committed.clone()));
        }
        self.carry_out(io, leader, &committed);
    }

    /// A server does what was committed, and answers if it was asked there.
    pub(super) fn carry_out(&mut self, io: &mut Io<'_>, at: Host, transaction: &Transaction) {
        let member = &mut self.members[at];
        let (events, answer) = member.tree.apply(transaction);
        for event in &events {
            let (frame, watchers) = member.watches.tell(event);
            for to in watchers {
                io.send(to, frame.clone());
            }
        }
        let ends = matches!(transaction.action, Action::CloseSession) && answer.is_ok();
        if ends && let Some(leadership) = member.leadership() {
            leadership.sessions.remove(&transaction.session);
        }
        let connection = transaction.connection.filter(|_| transaction.at == at);
        let connection = connection.filter(|one| self.clients.contains_key(one));
        if let Some(connection) = connection {
            match transaction.action {
                Action::OpenSession(_) => self.welcome(io, connection, true),
                _ => self.answer_ordered(io, connection, answer),
            }
        }
        if ends {
            let of_it = self.clients.iter();
            let of_it = of_it
                .filter(|(_, client)| client.at == at && client.session == transaction.session);
            for connection in of_it.map(|(connection, _)| *connection).collect::<Vec<_>>() {
                self.hang_up(io, connection);
            }
        }
    }
}

impl Transaction {
    /// One that nobody is answered. The leader numbers it.
    fn own(at: Host, session: i64, action: Action) -> Self {
        Transaction {
            at,
            connection: None,
            zxid: 0,
            time: 0,
            session,
            refused: None,
            action,
        }
    }
}

impl Leadership {
    /// Takes what comes from that server.
    fn take(&mut self, io: &mut Io<'_>, from: Host, mut proposal: Transaction, tick: Duration) {
        let session = proposal.session;
        if let Action::OpenSession(timeout) = proposal.action {
            let tracked = Tracked::new(Some(from), ends_at(io.now, timeout, tick));
            self.sessions.insert(session, tracked);
        } else if !matches!(proposal.action, Action::CloseSession) {
            proposal.refused = self.check(session, from);
        } else if let Some(tracked) = self.sessions.get_mut(&session) {
            // From wherever it comes.
            tracked.is_closing = true;
        }
        self.enqueue(io, proposal);
    }

    fn enqueue(&mut self, io: &mut Io<'_>, proposal: Transaction) {
        let at = io.now + Duration::from_micros(io.random.u64(1_000..5_000));
        let last = self.pending.back().map_or(at, |(last, _)| *last);
        self.pending
            .push_back((at.max(last), Pending::Proposal(proposal)));
    }

    /// Ends the sessions that were silent for too long. Returns whether there are any.
    fn expire(&mut self, io: &mut Io<'_>, leader: Host) -> bool {
        let silent = self.sessions.iter_mut();
        let silent = silent.filter(|(_, one)| !one.is_closing && one.ends_at <= io.now);
        let silent: Vec<_> = silent
            .map(|(session, one)| {
                one.is_closing = true;
                *session
            })
            .collect();
        for session in &silent {
            io.log(format!("ZooKeeper: session {session:#x} expires"));
            self.enqueue(io, Transaction::own(leader, *session, Action::CloseSession));
        }
        !silent.is_empty()
    }
}
