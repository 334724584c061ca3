//! A service without a world: by a clock that its user moves, with clients whose bytes come at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crosslock_world::service::{Connection, Done, Fault, Host, Io, Service};

/// A service, and what it has sent.
#[derive(Debug)]
pub struct Desk<S> {
    pub service: S,
    pub random: fastrand::Rng,
    /// The time since the world began.
    pub now: Duration,
    /// The time since 1970 at which it began.
    pub began: Duration,
    wakes: BTreeSet<Duration>,
    /// What has come on each connection, and wasn't taken yet.
    pub come: BTreeMap<Connection, Vec<u8>>,
    pub closed: BTreeSet<Connection>,
    pub log: Vec<String>,
    hosts: BTreeMap<Connection, Host>,
    /// What was sent to hosts that stand still or are down.
    stopped: BTreeMap<Host, Vec<(Connection, Vec<u8>)>>,
}

impl<S: Service> Desk<S> {
    pub fn new(service: S, seed: u64) -> Self {
        let mut desk = Desk {
            service,
            random: fastrand::Rng::with_seed(seed),
            now: Duration::ZERO,
            began: Duration::from_secs(1_700_000_000),
            wakes: BTreeSet::new(),
            come: BTreeMap::new(),
            closed: BTreeSet::new(),
            log: Vec::new(),
            hosts: BTreeMap::new(),
            stopped: BTreeMap::new(),
        };
        desk.tell(|service, io| service.woken(io));
        desk
    }

    fn tell(&mut self, what: impl FnOnce(&mut S, &mut Io<'_>)) {
        let walls = vec![self.began + self.now; self.service.hosts()];
        let mut io = Io {
            now: self.now,
            walls: &walls,
            random: &mut self.random,
            done: Vec::new(),
        };
        what(&mut self.service, &mut io);
        for done in io.done {
            match done {
                Done::Send(to, bytes) => self.come.entry(to).or_default().extend(bytes),
                Done::Close(one) => _ = self.closed.insert(one),
                Done::WakeAt(at) => _ = self.wakes.insert(at),
                Done::Log(line) => self.log.push(format!("{:?} {line}", self.now)),
            }
        }
    }

    /// When the service asks to be woken next.
    pub fn wakes_at(&self) -> Option<Duration> {
        self.wakes.first().copied()
    }

    pub fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.wakes_at().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.wakes.retain(|at| *at > self.now);
            self.tell(|service, io| service.woken(io));
        }
        self.now = until;
    }

    pub fn fault(&mut self, at: Host, fault: Fault) {
        self.tell(|service, io| service.fault(io, at, fault));
        match fault {
            Fault::Kill => {
                self.stopped.insert(at, Vec::new());
                let gone = self.hosts.iter().filter(|(_, host)| **host == at);
                self.closed.extend(gone.map(|(connection, _)| *connection));
            }
            Fault::Pause => _ = self.stopped.entry(at).or_default(),
            Fault::Start { .. } | Fault::Resume => {
                for (to, bytes) in self.stopped.remove(&at).unwrap_or_default() {
                    self.send(to, &bytes);
                }
            }
            _ => {}
        }
    }

    pub fn connect(&mut self, at: Host) -> Connection {
        let connection = self.hosts.len() as Connection + 1;
        self.hosts.insert(connection, at);
        match self.stopped.contains_key(&at) {
            true => _ = self.closed.insert(connection),
            false => self.tell(|service, io| service.connected(io, at, connection)),
        }
        connection
    }

    /// Sends bytes, cut anyhow.
    pub fn send(&mut self, to: Connection, mut bytes: &[u8]) {
        let at = self.hosts[&to];
        if let Some(kept) = self.stopped.get_mut(&at) {
            return kept.push((to, bytes.to_vec()));
        }
        while !bytes.is_empty() && !self.closed.contains(&to) {
            let (part, rest) = bytes.split_at(self.random.usize(1..=bytes.len()));
            self.tell(|service, io| service.received(io, at, to, part));
            bytes = rest;
        }
    }

    /// The client closes a connection.
    pub fn hang_up(&mut self, connection: Connection) {
        let at = self.hosts[&connection];
        if self.closed.insert(connection) {
            self.tell(|service, io| service.closed(io, at, connection));
        }
    }

    /// Takes what has come.
    pub fn take(&mut self, from: Connection) -> Vec<u8> {
        self.come.remove(&from).unwrap_or_default()
    }
}
