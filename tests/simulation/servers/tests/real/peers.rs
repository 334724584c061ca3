//! Those that are asked: simulated servers in a time of their own, and real ones.

use std::fmt::{Debug, Display};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crosslock_servers::desk::Desk;
use crosslock_world::service::{Connection, Host, Service};

pub trait Peer {
    fn connect(&mut self, at: Host) -> Connection;
    fn send(&mut self, to: Connection, bytes: &[u8]);
    fn wait(&mut self, time: Duration);
    /// What has come by now, or a millisecond later, and whether it is closed.
    fn come(&mut self, from: Connection) -> (&mut Vec<u8>, bool);
}

impl<S: Service> Peer for Desk<S> {
    fn connect(&mut self, at: Host) -> Connection {
        Desk::connect(self, at)
    }

    fn send(&mut self, to: Connection, bytes: &[u8]) {
        Desk::send(self, to, bytes);
    }

    fn wait(&mut self, time: Duration) {
        Desk::wait(self, time);
    }

    fn come(&mut self, from: Connection) -> (&mut Vec<u8>, bool) {
        Desk::wait(self, Duration::from_millis(1));
        let closed = self.closed.contains(&from);
        (self.come.entry(from).or_default(), closed)
    }
}

/// A real server, or several.
pub struct Real {
    addrs: Vec<SocketAddr>,
    streams: Vec<(TcpStream, Vec<u8>)>,
}

impl Real {
    fn stream(&mut self, connection: Connection) -> &mut (TcpStream, Vec<u8>) {
        &mut self.streams[usize::try_from(connection).expect("a place") - 1]
    }
}

impl Peer for Real {
    fn connect(&mut self, at: Host) -> Connection {
        let stream = TcpStream::connect(self.addrs[at]).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let least = Some(Duration::from_millis(1));
        stream.set_read_timeout(least).expect("a socket");
        self.streams.push((stream, Vec::new()));
        // As a desk counts.
        self.streams.len() as Connection
    }

    fn send(&mut self, to: Connection, bytes: &[u8]) {
        // It may be closed already.
        let _ = self.stream(to).0.write_all(bytes);
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn come(&mut self, from: Connection) -> (&mut Vec<u8>, bool) {
        let (stream, come) = self.stream(from);
        let mut buffer = vec![0; 64 << 10];
        let closed = match stream.read(&mut buffer) {
            Ok(count) => {
                come.extend(&buffer[..count]);
                count == 0
            }
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        (come, closed)
    }
}

/// A real server and a simulated one, which have to answer alike. A connection has the same number at both.
pub struct Both<S> {
    pub real: Real,
    pub simulated: Desk<S>,
}

/// Which of both is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Real,
    Simulated,
}

impl<S: Service> Both<S> {
    pub fn new(addrs: Vec<SocketAddr>, simulated: S) -> Self {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let streams = Vec::new();
        Both {
            real: Real { addrs, streams },
            simulated: Desk::new(simulated, seed),
        }
    }

    pub fn connect(&mut self, at: Host) -> Connection {
        self.real.connect(at);
        self.simulated.connect(at)
    }

    /// What each says.
    pub fn each<T>(&mut self, mut ask: impl FnMut(&mut dyn Peer, Side) -> T) -> (T, T) {
        let real = ask(&mut self.real, Side::Real);
        (real, ask(&mut self.simulated, Side::Simulated))
    }

    #[track_caller]
    pub fn alike<T: PartialEq + Debug>(
        &mut self,
        what: impl Display,
        ask: impl FnMut(&mut dyn Peer, Side) -> T,
    ) -> T {
        let (real, simulated) = self.each(ask);
        assert_eq!(simulated, real, "{what}");
        real
    }
}
