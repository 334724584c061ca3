//! Look-ups of hosts, and connections.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

/// The addresses of a host. It blocks for as long as the system's look-up takes.
pub(crate) fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// Begins to connect a socket that doesn't block; also says whether it is connected already.
pub(crate) fn begin_connect(domain: Domain, address: &SockAddr) -> io::Result<(Socket, bool)> {
    let socket = Socket::new(domain, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(address) {
        Ok(()) => Ok((socket, true)),
        Err(e) if e.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => Ok((socket, false)),
        // A unix socket says so at once when the server's queue is full; TCP waits.
        Err(e) => Err(e),
    }
}
