//! What sockets of Unix systems do in their own way. `windows.rs` has the same for Windows.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::{os::unix::net::UnixStream, time::Duration};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// The end of a stream, whatever is to be read before it. Without `RDHUP` it shows only when both sides closed.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) const CLOSED: PollFlags = PollFlags::HUP;

// On Apple's systems the socket itself raises no SIGPIPE: socket2 sees to that.
#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Whether a call of `connect` that doesn't wait has begun to connect.
pub(super) fn is_connecting(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error())
}

/// Has a connected socket block, up to its read timeout.
pub(super) fn make_ready(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_nonblocking(false)
}

/// For how long a read blocks: the system knows it.
#[derive(Debug)]
pub(super) struct ReadTimeout;

impl ReadTimeout {
    pub(super) fn new() -> Self {
        ReadTimeout
    }

    pub(super) fn set(&self, socket: &socket2::Socket, timeout: Duration) -> io::Result<()> {
        socket.set_read_timeout(Some(timeout))
    }

    #[inline]
    pub(super) fn read(
        &self,
        mut socket: &socket2::Socket,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        socket.read(buffer)
    }
}

pub(super) fn read_now(socket: &socket2::Socket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((_, read)) => return Ok(read),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

pub(super) fn write_now(socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(socket, bytes, SEND)?)
}

/// A pipe from a process to itself, which a thread can wait for together with sockets. Neither end blocks.
#[derive(Debug)]
pub(super) struct SelfPipe {
    reader: UnixStream,
    writer: UnixStream,
}

impl SelfPipe {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(SelfPipe { reader, writer })
    }

    /// Makes it readable.
    pub(super) fn write(&self) {
        // If it is full it is readable already.
        let _ = (&self.writer).write(&[0]);
    }

    /// Reads what was written.
    pub(super) fn drain(&self) {
        let _ = (&self.reader).read(&mut [0; 512]);
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}
