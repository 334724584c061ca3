//! A stream in two halves: one thread reads while others write.
//!
//! Encrypted, both share a session, which is locked for no I/O. What the session has to say by itself, such as a new key, goes
//! out in front of what is written next.

use std::io::{self, Read, Write};

use super::socket::{Closer, Socket};
use super::stream::Stream;
use super::tls::SharedSession;
use crate::base::clock::Deadline;

/// How much is asked for at once.
const CHUNK: usize = 16 * 1024;

/// The half that reads. After any error but a timeout it must be dropped.
#[derive(Debug)]
pub(in crate::engine) struct ReadHalf {
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
pub(in crate::engine) struct WriteHalf {
    socket: Socket,
    session: Option<SharedSession>,
}

impl ReadHalf {
    pub(in crate::engine) fn of(stream: Stream) -> io::Result<Self> {
        let (socket, session) = stream.into_parts();
        let encrypted = session.map(|session| Encrypted::of(session.shared()));
        let encrypted = encrypted.transpose()?;
        Ok(ReadHalf { socket, encrypted })
    }

    /// The other half, with a deadline of its own.
    pub(in crate::engine) fn writer(&self) -> WriteHalf {
        let session = self.encrypted.as_ref().map(|one| one.session.clone());
        WriteHalf {
            socket: self.socket.another_handle(),
            session,
        }
    }

    pub(in crate::engine) fn set_deadline(&mut self, deadline: &Deadline) {
        self.socket.set_deadline(deadline);
    }

    pub(in crate::engine) fn closer(&self) -> Closer {
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
    pub(in crate::engine) fn set_deadline(&mut self, deadline: &Deadline) {
        self.socket.set_deadline(deadline);
    }

    pub(in crate::engine) fn closer(&self) -> Closer {
        self.socket.closer()
    }

    pub(in crate::engine) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &self.session {
            Some(session) => self.socket.write_all(&session.encrypt(bytes)?),
            None => self.socket.write_all(bytes),
        }
    }
}
