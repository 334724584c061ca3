//! A stream to a server, plain or encrypted.

use std::io::{self, ErrorKind, Read, Write};

use super::socket::Socket;
use super::tls::Session;

/// A stream to a server, plain or encrypted, on which every call ends by the deadline of its socket.
#[derive(Debug)]
pub(in crate::engine) struct Stream {
    socket: Socket,
    /// `None` on a plain stream.
    session: Option<Session>,
}

impl Stream {
    pub(super) fn new(socket: Socket, session: Option<Session>) -> Self {
        Stream { socket, session }
    }

    #[cfg(feature = "zookeeper")]
    pub(super) fn into_parts(self) -> (Socket, Option<Session>) {
        (self.socket, self.session)
    }

    pub(in crate::engine) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(in crate::engine) fn socket_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }

    #[cfg(feature = "etcd")]
    pub(in crate::engine) fn is_encrypted(&self) -> bool {
        self.session.is_some()
    }

    /// Whether there is nothing to read, and no end either. An encrypted stream is told things unasked, so only its
    /// end counts.
    pub(in crate::engine) fn is_quiet(&self) -> bool {
        self.socket.is_quiet(self.session.is_some())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.session {
            Some(session) => session.over(&mut self.socket).read(buffer),
            None => self.socket.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else {
            return self.socket.write(bytes);
        };
        let mut over = session.over(&mut self.socket);
        over.write(bytes).map_err(|e| why_closed(e, &mut over))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.session else {
            return self.socket.flush();
        };
        let mut over = session.over(&mut self.socket);
        over.flush().map_err(|e| why_closed(e, &mut over))
    }
}

/// Why nothing could be written to an encrypted stream. A server that ends it says why before, and that is still to be read.
pub(in crate::engine) fn why_closed(unwritten: io::Error, reader: &mut impl Read) -> io::Error {
    if unwritten.kind() == ErrorKind::TimedOut {
        return unwritten;
    }
    match reader.read(&mut [0]) {
        Err(told) if told.kind() == ErrorKind::InvalidData => told,
        _ => unwritten,
    }
}

/// Whether a server has ended an encrypted session because it wants a certificate, or doesn't trust the one that it got.
pub(in crate::engine) fn is_about_our_certificate(error: &io::Error) -> bool {
    let text = error.to_string();
    let is_about_it = text.contains("ertificate") || text.contains("UnknownCA");
    error.kind() == ErrorKind::InvalidData && text.contains("alert") && is_about_it
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a read gives. `None`: it must not be read.
    struct Told(Option<ErrorKind>);

    impl Read for Told {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(self.0.expect("it isn't read").into())
        }
    }

    #[test]
    fn server_that_hung_up_has_told_why() {
        let why = |unwritten: ErrorKind, told| why_closed(unwritten.into(), &mut Told(told)).kind();
        let (closed, alert) = (ErrorKind::BrokenPipe, ErrorKind::InvalidData);
        assert_eq!(why(closed, Some(alert)), alert);
        assert_eq!(why(closed, Some(ErrorKind::ConnectionReset)), closed);
        assert_eq!(why(ErrorKind::TimedOut, None), ErrorKind::TimedOut);
    }
}
