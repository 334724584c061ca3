//! Addresses where `connect` hangs, or is refused.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// A listener on loopback which never accepts and whose backlog is full: the kernel drops every further SYN.
#[derive(Debug)]
pub struct BlackHole {
    addr: SocketAddr,
    // Held open: the first keeps the port, the others fill its backlog.
    _listener: Socket,
    _backlog: Vec<TcpStream>,
}

impl BlackHole {
    pub fn start() -> Self {
        let (listener, addr) = bound();
        listener.listen(0).expect("listen");
        Self {
            addr,
            _listener: listener,
            _backlog: fill(addr),
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }
}

/// A port of loopback at which nobody listens, and that nobody else is given meanwhile.
#[derive(Debug)]
pub struct ClosedPort {
    addr: SocketAddr,
    _bound: Socket,
}

impl ClosedPort {
    pub fn reserve() -> Self {
        let (_bound, addr) = bound();
        Self { addr, _bound }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("open a socket");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(&any.into()).expect("bind a free port");
    let addr = socket.local_addr().expect("ask for the port");
    let addr = addr.as_socket().expect("an IPv4 address");
    (socket, addr)
}

fn fill(addr: SocketAddr) -> Vec<TcpStream> {
    let patience = Duration::from_millis(150);
    let streams: Vec<_> = std::iter::from_fn(|| TcpStream::connect_timeout(&addr, patience).ok())
        .take(64)
        .collect();
    assert!(streams.len() < 64, "the backlog of {addr} has no end");
    streams
}
