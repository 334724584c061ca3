//! What sockets of Windows do in their own way. `unix.rs` has the same for Unix systems.
//!
//! A socket here never blocks, since Windows has no flag for a single call that doesn't wait. After a read that timed
//! out by `SO_RCVTIMEO` Windows leaves the state of a socket open, so a read polls first.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{
    os::windows::io::{AsSocket as _, BorrowedSocket},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags};

/// WSAPoll tells the end of a stream without being asked, and refuses to be asked for it.
pub(super) const CLOSED: PollFlags = PollFlags::empty();

/// Whether a call of `connect` that doesn't wait has begun to connect.
pub(super) fn is_connecting(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// Leaves a connected socket as it is: it doesn't block.
pub(super) fn make_ready(_socket: &socket2::Socket) -> io::Result<()> {
    Ok(())
}

/// For how long a read blocks, in milliseconds.
#[derive(Debug)]
pub(super) struct ReadTimeout(AtomicU64);

impl ReadTimeout {
    pub(super) fn new() -> Self {
        ReadTimeout(AtomicU64::new(u64::MAX))
    }

    pub(super) fn set(&self, _socket: &socket2::Socket, timeout: Duration) -> io::Result<()> {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis.max(1), Relaxed);
        Ok(())
    }

    pub(super) fn read(&self, socket: &socket2::Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let timeout = Duration::from_millis(self.0.load(Relaxed));
        if super::wait_for(&mut [PollFd::new(socket, PollFlags::IN)], timeout)? {
            read_now(socket, buffer)
        } else {
            Err(ErrorKind::WouldBlock.into())
        }
    }
}

pub(super) fn read_now(mut socket: &socket2::Socket, buffer: &mut [u8]) -> io::Result<usize> {
    socket.read(buffer)
}

pub(super) fn write_now(mut socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
    socket.write(bytes)
}

/// A datagram socket that is connected to itself, which a thread can wait for together with other sockets. It never
/// blocks, and takes no datagram of another.
#[derive(Debug)]
pub(super) struct SelfPipe(UdpSocket);

impl SelfPipe {
    pub(super) fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_nonblocking(true)?;
        Ok(SelfPipe(socket))
    }

    /// Makes it readable.
    pub(super) fn write(&self) {
        // If it is full it is readable already.
        let _ = self.0.send(&[0]);
    }

    /// Reads what was written.
    pub(super) fn drain(&self) {
        while self.0.recv(&mut [0; 16]).is_ok() {}
    }

    pub(super) fn as_fd(&self) -> BorrowedSocket<'_> {
        self.0.as_socket()
    }
}
