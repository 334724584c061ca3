//! Those that are asked: a simulated ensemble in a time of its own, and real servers.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crosslock_servers::etcd::Etcd;
use crosslock_world::service::{Connection, Done, Fault, Host, Io, Service};
use serde_json::Value;

use crate::answers::{self, Answer};

/// A request, with the header by which the library demands a leader.
pub fn request(path: &str, body: &str) -> Vec<u8> {
    with_headers(path, body, "Grpc-Metadata-Hasleader: true\r\n")
}

pub fn with_headers(path: &str, body: &str, headers: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: etcd\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Somebody that answers.
pub trait Peer {
    fn connect(&mut self, at: Host) -> Connection;
    fn send(&mut self, to: Connection, bytes: &[u8]);
    /// The answers to so many requests.
    fn answers(&mut self, to: Connection, count: usize) -> Vec<Answer>;
    /// What a stream has told after so much time.
    fn told(&mut self, to: Connection, after: Duration) -> Vec<Value>;

    /// The token that comes as the answer to a login.
    fn token(&mut self, to: Connection) -> String {
        let answer = self.answers(to, 1).remove(0);
        let token = answer.messages[0]["token"].as_str();
        token
            .unwrap_or_else(|| panic!("no token: {answer:?}"))
            .to_owned()
    }

    fn ask(&mut self, to: Connection, path: &str, body: &Value) -> Answer {
        self.send(to, &request(path, &body.to_string()));
        self.answers(to, 1).remove(0)
    }
}

/// A simulated ensemble.
pub struct Simulated {
    pub etcd: Etcd,
    pub now: Duration,
    random: fastrand::Rng,
    wakes: Vec<Duration>,
    came: BTreeMap<Connection, Vec<u8>>,
    hosts: BTreeMap<Connection, Host>,
    pub closed: Vec<Connection>,
    last: Connection,
    /// Which hosts are told of something.
    up: Vec<bool>,
}

impl Simulated {
    pub fn new(etcd: Etcd, seed: u64) -> Self {
        Self {
            up: vec![true; etcd.hosts()],
            etcd,
            now: Duration::from_secs(5),
            random: fastrand::Rng::with_seed(seed),
            wakes: Vec::new(),
            came: BTreeMap::new(),
            hosts: BTreeMap::new(),
            closed: Vec::new(),
            last: 0,
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Etcd, &mut Io<'_>) -> T) -> T {
        let walls = vec![self.now; self.etcd.hosts()];
        let mut io = Io {
            now: self.now,
            walls: &walls,
            random: &mut self.random,
            done: Vec::new(),
        };
        let result = act(&mut self.etcd, &mut io);
        for done in io.done {
            match done {
                Done::Send(to, bytes) => self.came.entry(to).or_default().extend(bytes),
                Done::Close(connection) => self.closed.push(connection),
                Done::WakeAt(at) => self.wakes.push(at),
                Done::Log(_) => {}
            }
        }
        result
    }

    pub fn fault(&mut self, at: Host, fault: Fault) {
        match fault {
            Fault::Kill | Fault::Pause => self.up[at] = false,
            Fault::Start { .. } | Fault::Resume => self.up[at] = true,
            _ => {}
        }
        self.with(|etcd, io| etcd.fault(io, at, fault));
    }

    /// Lets a time pass.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Goes on to what happens next, unless that is after the end.
    fn step(&mut self, end: Duration) -> bool {
        let Some(next) = self.wakes.iter().copied().min().filter(|next| *next <= end) else {
            return false;
        };
        self.wakes.retain(|wake| *wake != next);
        self.now = self.now.max(next);
        self.with(|etcd, io| etcd.woken(io));
        true
    }

    /// The number of a member, and that of its leader, as it says itself.
    fn status(&mut self, at: Host) -> (Value, Value) {
        let to = self.connect(at);
        self.send(to, &with_headers("/v3/maintenance/status", "", ""));
        let came = self.came.remove(&to).expect("it answers at once");
        let status = answers::body(&came);
        (
            status["header"]["member_id"].clone(),
            status["leader"].clone(),
        )
    }

    pub fn member(&mut self, at: Host) -> Value {
        self.status(at).0
    }

    /// Whether it takes itself for the leader.
    pub fn leads(&mut self, at: Host) -> bool {
        if !self.up[at] {
            return false;
        }
        let (own, leader) = self.status(at);
        own == leader
    }

    /// What has come and was an answer.
    pub fn taken(&mut self, from: Connection) -> Option<Answer> {
        let came = self.came.get_mut(&from)?;
        let (answer, length) = answers::first(came)?;
        came.drain(..length);
        Some(answer)
    }
}

impl Peer for Simulated {
    fn connect(&mut self, at: Host) -> Connection {
        self.last += 1;
        let connection = self.last;
        self.hosts.insert(connection, at);
        self.with(|etcd, io| etcd.connected(io, at, connection));
        connection
    }

    /// Cuts them anywhere.
    fn send(&mut self, to: Connection, mut bytes: &[u8]) {
        let at = self.hosts[&to];
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(self.random.usize(1..=bytes.len()));
            self.with(|etcd, io| etcd.received(io, at, to, part));
            bytes = rest;
        }
    }

    fn answers(&mut self, to: Connection, count: usize) -> Vec<Answer> {
        let end = self.now + Duration::from_secs(30);
        let mut answers = Vec::new();
        while answers.len() < count {
            match self.taken(to) {
                Some(answer) => answers.push(answer),
                None => assert!(self.step(end), "{answers:?} and no more of {count}"),
            }
        }
        answers
    }

    fn told(&mut self, to: Connection, after: Duration) -> Vec<Value> {
        self.pass(after);
        answers::stream(self.came.get(&to).map_or(&[], Vec::as_slice))
    }
}

/// Real servers.
pub struct Real {
    addrs: Vec<SocketAddr>,
    connections: Vec<(TcpStream, Vec<u8>)>,
}

impl Real {
    pub fn new(addrs: Vec<SocketAddr>) -> Self {
        let connections = Vec::new();
        Self { addrs, connections }
    }

    /// Whether anything came in this time.
    fn read(&mut self, from: Connection, within: Duration) -> bool {
        let (stream, came) = &mut self.connections[place(from)];
        stream
            .set_read_timeout(Some(within))
            .expect("it has a timeout");
        let mut bytes = [0; 64 << 10];
        match stream.read(&mut bytes) {
            Ok(read) => came.extend_from_slice(&bytes[..read]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return false;
            }
            Err(e) => panic!("{e}"),
        }
        true
    }
}

fn place(connection: Connection) -> usize {
    usize::try_from(connection).expect("a place")
}

impl Peer for Real {
    fn connect(&mut self, at: Host) -> Connection {
        let stream = TcpStream::connect(self.addrs[at]).expect("it is there");
        stream.set_nodelay(true).expect("a socket");
        self.connections.push((stream, Vec::new()));
        self.connections.len() as Connection - 1
    }

    fn send(&mut self, to: Connection, bytes: &[u8]) {
        let (stream, _) = &mut self.connections[place(to)];
        stream.write_all(bytes).expect("it takes it");
    }

    fn answers(&mut self, to: Connection, count: usize) -> Vec<Answer> {
        let mut answers = Vec::new();
        while answers.len() < count {
            let came = &mut self.connections[place(to)].1;
            match answers::first(came) {
                Some((answer, length)) => {
                    came.drain(..length);
                    answers.push(answer);
                }
                None => assert!(
                    self.read(to, Duration::from_secs(15)),
                    "{answers:?} and no more of {count}"
                ),
            }
        }
        answers
    }

    fn told(&mut self, to: Connection, after: Duration) -> Vec<Value> {
        while self.read(to, after) {}
        answers::stream(&self.connections[place(to)].1)
    }
}
