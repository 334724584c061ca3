//! A simulated ensemble and a real server, to which the same bytes are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crosslock_servers::zookeeper::ZooKeeper;
use crosslock_world::service::{Connection, Done, Fault, Io, Service};

/// What came on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Come {
    pub frames: Vec<Vec<u8>>,
    pub closed: bool,
}

/// How long to read.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// The answer with that number is there.
    Answer(i32),
    /// So many frames are there.
    Frames(usize),
    Closed,
}

impl Until {
    fn is_there(self, come: &Come) -> bool {
        come.closed || self.has_come(come)
    }

    pub fn has_come(self, come: &Come) -> bool {
        let mut frames = come.frames.iter();
        match self {
            Until::Answer(xid) => frames.any(|frame| frame.starts_with(&xid.to_be_bytes())),
            Until::Frames(count) => come.frames.len() >= count,
            Until::Closed => false,
        }
    }
}

/// What speaks with clients.
pub trait Server {
    fn connect(&mut self, at: usize) -> Connection;
    fn send(&mut self, to: Connection, bytes: &[u8]);
    fn receive(&mut self, from: Connection, until: Until) -> Come;
    fn wait(&mut self, time: Duration);
}

/// The simulated ensemble, in a world in which nothing else happens.
pub struct Simulated {
    pub service: ZooKeeper,
    pub now: Duration,
    random: fastrand::Rng,
    wakes: BTreeSet<Duration>,
    connections: Connection,
    /// How long it waits for what is to come.
    pub patience: Duration,
    hosts: BTreeMap<Connection, usize>,
    /// What was sent to hosts that are down or stand still.
    stopped: BTreeMap<usize, Vec<(Connection, Vec<u8>)>>,
    come: BTreeMap<Connection, (Vec<u8>, bool)>,
}

impl Simulated {
    pub fn new(service: ZooKeeper, seed: u64) -> Self {
        let mut server = Simulated {
            service,
            now: Duration::ZERO,
            random: fastrand::Rng::with_seed(seed),
            wakes: BTreeSet::new(),
            connections: 0,
            patience: Duration::from_secs(30),
            hosts: BTreeMap::new(),
            stopped: BTreeMap::new(),
            come: BTreeMap::new(),
        };
        server.call(|service, io| service.woken(io));
        server
    }

    fn call(&mut self, call: impl FnOnce(&mut ZooKeeper, &mut Io<'_>)) {
        let wall = Duration::from_secs(1_700_000_000) + self.now;
        let walls = vec![wall; self.service.hosts()];
        let mut io = Io {
            now: self.now,
            walls: &walls,
            random: &mut self.random,
            done: Vec::new(),
        };
        call(&mut self.service, &mut io);
        for done in io.done {
            match done {
                Done::Send(to, bytes) => {
                    let (come, closed) = self.come.entry(to).or_default();
                    assert!(!*closed, "nothing is sent on what is closed");
                    come.extend(bytes);
                }
                Done::Close(one) => self.come.entry(one).or_default().1 = true,
                Done::WakeAt(time) => _ = self.wakes.insert(time),
                Done::Log(_) => {}
            }
        }
    }

    pub fn fault(&mut self, at: usize, fault: Fault) {
        self.call(|service, io| service.fault(io, at, fault));
        match fault {
            Fault::Kill => {
                self.stopped.insert(at, Vec::new());
                let gone = self.hosts.iter().filter(|(_, host)| **host == at);
                for (connection, _) in gone {
                    self.come.entry(*connection).or_default().1 = true;
                }
            }
            Fault::Pause => _ = self.stopped.insert(at, Vec::new()),
            Fault::Start { .. } | Fault::Resume => {
                for (to, bytes) in self.stopped.remove(&at).unwrap_or_default() {
                    self.send(to, &bytes);
                }
            }
            _ => {}
        }
    }
}

impl Server for Simulated {
    fn connect(&mut self, at: usize) -> Connection {
        self.connections += 1;
        let connection = self.connections;
        self.hosts.insert(connection, at);
        self.come.insert(connection, Default::default());
        if self.stopped.contains_key(&at) {
            self.come.entry(connection).or_default().1 = true;
        } else {
            self.call(|service, io| service.connected(io, at, connection));
        }
        connection
    }

    /// Cuts it anyhow.
    fn send(&mut self, to: Connection, bytes: &[u8]) {
        let (at, mut rest) = (self.hosts[&to], bytes);
        if let Some(kept) = self.stopped.get_mut(&at) {
            return kept.push((to, bytes.to_vec()));
        }
        while !rest.is_empty() && !self.come[&to].1 {
            let (part, behind) = rest.split_at(self.random.usize(1..=rest.len()));
            self.call(|service, io| service.received(io, at, to, part));
            rest = behind;
        }
    }

    fn receive(&mut self, from: Connection, until: Until) -> Come {
        let end = self.now + self.patience;
        let mut come = Come::default();
        loop {
            let (bytes, closed) = self.come.get_mut(&from).expect("a connection");
            take_frames(bytes, &mut come.frames);
            come.closed = *closed;
            if until.is_there(&come) || self.now > end {
                return come;
            }
            self.wait(Duration::from_millis(1));
        }
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.wakes.first().copied().filter(|next| *next <= end) {
            self.wakes.remove(&next);
            self.now = next.max(self.now);
            self.call(|service, io| service.woken(io));
        }
        self.now = end;
    }
}

/// A real server, or several.
pub struct Real {
    addrs: Vec<SocketAddr>,
    streams: BTreeMap<Connection, (TcpStream, Vec<u8>)>,
}

impl Real {
    pub fn new(addrs: Vec<SocketAddr>) -> Self {
        let streams = BTreeMap::new();
        Real { addrs, streams }
    }
}

impl Server for Real {
    fn connect(&mut self, at: usize) -> Connection {
        let stream = TcpStream::connect(self.addrs[at]).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .expect("a socket");
        let connection = self.streams.len() as Connection + 1;
        self.streams.insert(connection, (stream, Vec::new()));
        connection
    }

    fn send(&mut self, to: Connection, bytes: &[u8]) {
        // It may be closed already.
        let mut stream = &self.streams[&to].0;
        let _ = stream.write_all(bytes);
    }

    fn receive(&mut self, from: Connection, until: Until) -> Come {
        let (stream, bytes) = self.streams.get_mut(&from).expect("a connection");
        let end = Instant::now() + Duration::from_secs(30);
        let mut come = Come::default();
        loop {
            take_frames(bytes, &mut come.frames);
            if until.is_there(&come) || Instant::now() > end {
                return come;
            }
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) => come.closed = true,
                Ok(count) => bytes.extend(&buffer[..count]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => come.closed = true,
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

fn take_frames(bytes: &mut Vec<u8>, to: &mut Vec<Vec<u8>>) {
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*length)).expect("it fits");
        let Some(frame) = rest.get(..length) else {
            return;
        };
        to.push(frame.to_vec());
        bytes.drain(..4 + length);
    }
}
