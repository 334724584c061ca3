//! A stream to a server, plain or encrypted: whole, or in two halves, of which one thread reads while others write.
//!
//! Encrypted, both halves share a session, which is locked for no I/O. What the session has to say by itself, such as
//! a new key, goes out in front of what is written next.

use std::io::{self, ErrorKind, Read, Write};

use super::socket::{Closer, Socket};
use super::tls::{Session, SharedSession};
use crate::base::Deadline;

/// A stream to a server, plain or encrypted, on which every call ends by the deadline of its socket.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    /// `None` on a plain stream.
    session: Option<Session>,
}

impl Stream {
    pub(super) fn new(socket: Socket, session: Option<Session>) -> Self {
        Stream { socket, session }
    }

    pub(super) fn into_parts(self) -> (Socket, Option<Session>) {
        (self.socket, self.session)
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn socket_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.session.is_some()
    }

    /// Whether there is nothing to read, and no end either. An encrypted stream is told things unasked, so only its
    /// end counts.
    pub(crate) fn is_quiet(&self) -> bool {
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

/// Why nothing could be written to an encrypted stream. A server that ends it says why before, and that is still to
/// be read.
pub(crate) fn why_closed(unwritten: io::Error, reader: &mut impl Read) -> io::Error {
    if unwritten.kind() == ErrorKind::TimedOut {
        return unwritten;
    }
    match reader.read(&mut [0]) {
        Err(told) if told.kind() == ErrorKind::InvalidData => told,
        _ => unwritten,
    }
}

/// Whether a server has ended an encrypted session because it wants a certificate, or doesn't trust the one that it
/// got.
pub(crate) fn is_about_our_certificate(error: &io::Error) -> bool {
    let text = error.to_string();
    let is_about_it = text.contains("ertificate") || text.contains("UnknownCA");
    error.kind() == ErrorKind::InvalidData && text.contains("alert") && is_about_it
}

/// How much is asked for at once.
const CHUNK: usize = 16 * 1024;

/// The half that reads. After any error but a timeout it must be dropped.
#[derive(Debug)]
pub(crate) struct ReadHalf {
    socket: Socket,
    encrypted: Option<Encrypted>,
}

/// What is read of an encrypted stream.
#[derive(Debug)]
struct Encrypted {
    session: SharedSession,
    /// What has come, as it came.
    chunk: Vec<u8>,
    /// Its plain text, and what of it has been given out.
    plain: Vec<u8>,
    used: usize,
}

/// The half that writes, by one thread at a time. After any error it must be dropped.
#[derive(Debug)]
pub(crate) struct WriteHalf {
    socket: Socket,
    session: Option<SharedSession>,
}

impl ReadHalf {
    pub(crate) fn of(stream: Stream) -> io::Result<Self> {
        let (socket, session) = stream.into_parts();
        let encrypted = session.map(|session| Encrypted::of(session.shared()));
        let encrypted = encrypted.transpose()?;
        Ok(ReadHalf { socket, encrypted })
    }

    /// The other half, with a deadline of its own.
    pub(crate) fn writer(&self) -> WriteHalf {
        let session = self.encrypted.as_ref().map(|one| one.session.clone());
        WriteHalf {
            socket: self.socket.another_handle(),
            session,
        }
    }

    pub(crate) fn set_deadline(&mut self, deadline: &Deadline) {
        self.socket.set_deadline(deadline);
    }

    pub(crate) fn closer(&self) -> Closer {
        self.socket.closer()
    }
}

impl Encrypted {
    fn of(session: SharedSession) -> io::Result<Self> {
        let mut plain = Vec::new();
        // What came with the end of the handshake.
        session.decrypt(&[], &mut plain)?;
        Ok(Encrypted {
            session,
            chunk: vec![0; CHUNK],
            plain,
            used: 0,
        })
    }

    /// What is left of the plain text. Without any more is read; empty is the end.
    fn plain(&mut self, socket: &mut Socket) -> io::Result<&[u8]> {
        if self.used == self.plain.len() {
            self.plain.clear();
            self.used = 0;
        }
        while self.plain.is_empty() {
            let read = socket.read(&mut self.chunk)?;
            if read == 0 {
                break;
            }
            self.session.decrypt(&self.chunk[..read], &mut self.plain)?;
        }
        Ok(&self.plain[self.used..])
    }
}

impl Read for ReadHalf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(encrypted) = &mut self.encrypted else {
            return self.socket.read(buffer);
        };
        let read = encrypted.plain(&mut self.socket)?.read(buffer)?;
        encrypted.used += read;
        Ok(read)
    }
}

impl WriteHalf {
    pub(crate) fn set_deadline(&mut self, deadline: &Deadline) {
        self.socket.set_deadline(deadline);
    }

    pub(crate) fn closer(&self) -> Closer {
        self.socket.closer()
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &self.session {
            Some(session) => self.socket.write_all(&session.encrypt(bytes)?),
            None => self.socket.write_all(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
