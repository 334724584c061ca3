//! The hosts of a URL, and who is asked next when one fails.

use std::{sync::Arc, time::Duration};

use super::failure::{Effect, Failure, HostFailure};
use super::{connection::Connection, proof::MemberTerm};
use crate::base::{Deadline, sys::sync::Mutex, sys::time};
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::net::pool::{Pool, Rotation};
use crate::engine::net::{SHORTEST_SHARE, connector::Connector, tls::Trust};

/// The hosts of a URL. All know the same: the one that answered last is asked first.
#[derive(Debug)]
pub(super) struct Hosts {
    all: Vec<Host>,
    pub(super) rotation: Rotation,
    connect_timeout: Duration,
    io_timeout: Duration,
}

/// One host, and the connections to it that are idle.
#[derive(Debug)]
struct Host {
    /// With its port.
    name: Arc<str>,
    connector: Connector,
    pool: Pool<Connection>,
    /// What it said last on any connection, for those to come.
    seen: Mutex<Option<MemberTerm>>,
}

/// The connection on which an answer came.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) host: usize,
    pub(super) connection: Connection,
}

impl Hosts {
    pub(super) fn new(
        hosts: &[HostPort],
        trust: Option<&Trust>,
        connect_timeout: Duration,
        io_timeout: Duration,
    ) -> Result<Self, Failure> {
        let all = hosts.iter().map(|at| {
            let tls = trust.map(|trust| trust.in_server(&at.host)).transpose()?;
            Ok(Host {
                name: at.to_string().into(),
                connector: Connector::new(Endpoint::Tcp(at.clone()), tls),
                pool: Pool::default(),
                seen: Mutex::default(),
            })
        });
        Ok(Hosts {
            all: all.collect::<Result<_, Failure>>()?,
            rotation: Rotation::new(hosts.len()),
            connect_timeout,
            io_timeout,
        })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self, trust: Option<&Trust>) -> Self {
        let all = self.all.iter().map(|host| Host {
            name: host.name.clone(),
            connector: host.connector.after_fork(trust),
            pool: host.pool.after_fork(),
            seen: Mutex::default(),
        });
        let rotation = Rotation::new(self.all.len());
        rotation.answered(self.rotation.first());
        Hosts {
            all: all.collect(),
            rotation,
            ..*self
        }
    }

    /// Each host's name, with its port.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|host| &*host.name)
    }

    /// How long a host that can be reached needs for an answer at most.
    pub(super) fn patience(&self) -> Duration {
        self.connect_timeout.saturating_add(self.io_timeout)
    }

    /// For the next question.
    pub(super) fn put_back(&self, used: Used) {
        let Used { host, connection } = used;
        let host = &self.all[host];
        if let Some(seen) = connection.seen() {
            *host.seen.lock() = Some(seen);
        }
        if connection.is_in_step() {
            host.pool.put(connection, time::now());
        }
    }

    /// Asks one host after the other, until one answers what any of them would. What isn't repeatable is asked once.
    pub(super) fn ask<T>(
        &self,
        is_repeatable: bool,
        deadline: &Deadline,
        mut ask: impl FnMut(&mut Connection, &Deadline) -> Result<T, HostFailure>,
    ) -> Result<(T, Used), HostFailure> {
        let mut turns = self.rotation.turns(self.connect_timeout);
        let rounds_until = deadline.within(self.patience());
        let (mut reasons, mut was_slow) = (Reasons::default(), false);
        loop {
            let left = turns.left();
            let (host, connects_within) = turns.next(deadline.remaining());
            let attempt = Attempt {
                hosts: self,
                host,
                left,
                connects_within,
                is_repeatable,
                deadline,
            };
            let failed = match attempt.make(&mut ask) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            reasons.add(&self.all[host].name, &failed);
            was_slow |= failed.effect == Effect::Undone && failed.why.is_timeout();
            // A host that took longer than its turn to connect is tried again after all others, where there are some,
            // until the caller has to hear of it.
            let has_another_round = self.all.len() > 1 && was_slow && !rounds_until.is_over();
            let is_last = turns.is_round_over() && !has_another_round;
            if is_last || !attempt.may_go_on(&failed) {
                return Err(reasons.told_by(failed));
            }
            was_slow &= !turns.is_round_over();
        }
    }

    /// Asks that host alone, within the time to connect.
    pub(super) fn ask_one<T>(
        &self,
        host: usize,
        deadline: &Deadline,
        ask: impl FnOnce(&mut Connection, &Deadline) -> Result<T, HostFailure>,
    ) -> Result<T, HostFailure> {
        let deadline = deadline.within(self.connect_timeout);
        let mut connection = self.all[host].connect(&deadline)?;
        ask(&mut connection, &deadline)
    }
}

/// One host's turn.
struct Attempt<'a> {
    hosts: &'a Hosts,
    host: usize,
    /// How many hosts are still to be tried, with this one.
    left: u32,
    /// How long connecting may take at most.
    connects_within: Duration,
    is_repeatable: bool,
    deadline: &'a Deadline,
}

/// Which hosts were asked in vain, and why.
#[derive(Default)]
struct Reasons(Vec<(Arc<str>, String)>);

impl Reasons {
    fn add(&mut self, host: &Arc<str>, failed: &HostFailure) {
        let reason = failed.why.to_string();
        self.0.retain(|(other, _)| other != host);
        self.0.push((host.clone(), reason));
    }

    /// The failure of the last one names all of them.
    fn told_by(&self, failed: HostFailure) -> HostFailure {
        let hosts = self
            .0
            .iter()
            .map(|(host, reason)| format!("{host}: {reason}"));
        failed.in_words(&hosts.collect::<Vec<_>>().join("; "))
    }
}

impl Attempt<'_> {
    fn make<T>(
        &self,
        ask: &mut impl FnMut(&mut Connection, &Deadline) -> Result<T, HostFailure>,
    ) -> Result<(T, Used), HostFailure> {
        let host = &self.hosts.all[self.host];
        let began = time::now();
        if let Some(idle) = host.pool.take(began, |idle| idle.is_quiet()) {
            // Time is left for another one to the only host.
            match self.on(idle, self.left + 1, ask) {
                Err(failed) if self.deserves_another(&failed) => {
                    host.pool.close_those_before(began);
                }
                answer => return answer,
            }
        }
        match host.connect(&self.deadline.within(self.connects_within)) {
            Ok(connection) => self.on(connection, self.left, ask),
            Err(failed) => {
                if !failed.why.is_timeout() {
                    self.hosts.rotation.failed(self.host);
                }
                Err(failed)
            }
        }
    }

    /// Whether the same may be asked once more, of this host or another.
    fn may_go_on(&self, failed: &HostFailure) -> bool {
        !self.deadline.is_over() && failed.may_be_asked_elsewhere(self.is_repeatable)
    }

    /// Whether a new connection may do better than one that was idle, which something on the way may have forgotten.
    /// A host that is slow isn't waited for twice while there are others.
    fn deserves_another(&self, failed: &HostFailure) -> bool {
        let is_alone = self.hosts.all.len() == 1;
        self.may_go_on(failed) && (is_alone || !failed.why.is_timeout())
    }

    fn on<T>(
        &self,
        mut connection: Connection,
        left: u32,
        ask: &mut impl FnMut(&mut Connection, &Deadline) -> Result<T, HostFailure>,
    ) -> Result<(T, Used), HostFailure> {
        let began = time::now();
        let host = self.host;
        match ask(&mut connection, &self.answer_by(left)) {
            Ok(answer) => {
                self.hosts.rotation.answered(host);
                Ok((answer, Used { host, connection }))
            }
            Err(failed) if matches!(failed.effect, Effect::Refused | Effect::UnknownToken) => {
                self.hosts.put_back(Used { host, connection });
                Err(failed)
            }
            Err(failed) => {
                connection.give_up();
                let was_hasty = self.deadline.is_cancelled() || time::since(began) < SHORTEST_SHARE;
                if !(failed.why.is_timeout() && was_hasty) {
                    self.hosts.rotation.failed(host);
                }
                Err(failed)
            }
        }
    }

    /// What may be asked elsewhere leaves time for that.
    fn answer_by(&self, left: u32) -> Deadline {
        let share = match self.is_repeatable {
            true => (self.deadline.remaining() / left).max(SHORTEST_SHARE),
            false => Duration::MAX,
        };
        self.deadline.within(share.min(self.hosts.io_timeout))
    }
}

impl Host {
    fn connect(&self, deadline: &Deadline) -> Result<Connection, HostFailure> {
        let stream = self.connector.connect(deadline);
        let stream = stream.map_err(|e| Effect::Undone.by(e.into()))?;
        let seen = *self.seen.lock();
        Ok(Connection::new(stream, self.name.clone(), seen))
    }
}
