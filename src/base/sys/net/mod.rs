//! Sockets, and the look-up of hosts.

use std::net::{Shutdown, SocketAddr, ToSocketAddrs as _};
use std::{io, path::Path, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::{fd::AsFd as _, io::Errno};
use socket2::{Domain, SockAddr, Type};
#[cfg(not(windows))]
use unix as platform;
#[cfg(windows)]
use windows as platform;

#[cfg(not(windows))]
mod unix;
#[cfg(windows)]
mod windows;

/// Where a socket is to be connected.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    Tcp(SocketAddr),
    Unix(&'a Path),
}

/// A stream socket of the system.
#[derive(Debug)]
pub(crate) struct Socket(socket2::Socket, platform::ReadTimeout);

impl Socket {
    /// Begins to connect; also says whether it is connected already.
    pub(crate) fn begin_connect(to: &Target<'_>) -> io::Result<(Self, bool)> {
        let (domain, address) = match to {
            Target::Tcp(address) => (Domain::for_address(*address), (*address).into()),
            Target::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
        };
        let socket = socket2::Socket::new(domain, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address) {
            Ok(()) => Ok((Socket::of(socket), true)),
            Err(e) if platform::is_connecting(&e) => Ok((Socket::of(socket), false)),
            // A unix socket says so at once when the server's queue is full; TCP waits.
            Err(e) => Err(e),
        }
    }

    fn of(socket: socket2::Socket) -> Self {
        Socket(socket, platform::ReadTimeout::new())
    }

    /// Waits until it is connected, or has failed. False: not yet; it may return early.
    pub(crate) fn await_connected(&self, timeout: Duration) -> io::Result<bool> {
        self.await_writable(timeout)
    }

    /// Makes it ready for use, unless it has failed: then the error says why.
    pub(crate) fn finish_connect(&self, is_tcp: bool) -> io::Result<()> {
        self.0.take_error()?.map_or(Ok(()), Err)?;
        platform::make_ready(&self.0)?;
        if is_tcp {
            self.0.set_tcp_nodelay(true)?;
        }
        Ok(())
    }

    /// For how long a read blocks. It isn't zero, which would be for ever.
    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.1.set(&self.0, timeout)
    }

    /// Blocks until there is something to read, or for the read timeout: then the error is `WouldBlock`.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.read(&self.0, buffer)
    }

    /// Reads what is there. If there is nothing the error is `WouldBlock`.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        platform::read_now(&self.0, buffer)
    }

    /// Sends what there is room for, without SIGPIPE, which ends many a command-line tool. If there is no room the
    /// error is `WouldBlock`.
    pub(crate) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        platform::write_now(&self.0, bytes)
    }

    /// Waits until there is room to write, or it has failed. False: not yet; it may return early.
    pub(crate) fn await_writable(&self, timeout: Duration) -> io::Result<bool> {
        wait_for(&mut [PollFd::new(&self.0, PollFlags::OUT)], timeout)
    }

    /// Whether the peer has sent nothing and hasn't closed it. With `may_have_input` only its end counts.
    pub(crate) fn is_quiet(&self, may_have_input: bool) -> bool {
        let flags = if may_have_input {
            platform::CLOSED
        } else {
            platform::CLOSED | PollFlags::IN
        };
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&self.0, flags)], Some(&now)) == Ok(0)
    }

    /// Discards what wasn't delivered yet when this is closed.
    pub(crate) fn forget_unsent(&self) {
        // At worst it is delivered late.
        let _ = self.0.set_linger(Some(Duration::ZERO));
    }

    /// Ends what blocks on it, in whichever thread.
    pub(crate) fn shut_down(&self) {
        // It may be closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Wakes a thread that waits for a connection too. Neither end blocks: what is full wakes already.
#[allow(dead_code, reason = "an engine with an inbox uses it")]
#[derive(Debug)]
pub(crate) struct Waker(platform::SelfPipe);

#[allow(dead_code, reason = "an engine with an inbox uses it")]
impl Waker {
    /// Fails if there are no file descriptors for it.
    pub(crate) fn new() -> io::Result<Self> {
        platform::SelfPipe::new().map(Waker)
    }

    /// To be called after what the thread is to see.
    pub(crate) fn wake(&self) {
        self.0.write();
    }

    /// Blocks until `wake`, or until the connection is readable, at most for `timeout`. It may return earlier. All
    /// calls of `wake` before its end are seen by it, so the caller looks at what it waits for afterwards.
    pub(crate) fn wait(&self, connection: Option<&Socket>, timeout: Duration) -> io::Result<()> {
        await_any(connection, Some(self), timeout)
    }
}

/// The same for several connections, with a waker or without one.
#[allow(dead_code, reason = "an engine with an inbox uses it")]
pub(crate) fn await_any<'a>(
    connections: impl IntoIterator<Item = &'a Socket>,
    waker: Option<&Waker>,
    timeout: Duration,
) -> io::Result<()> {
    let sockets = connections.into_iter().map(|one| one.0.as_fd());
    let all = sockets.chain(waker.map(|waker| waker.0.as_fd()));
    let mut events: Vec<_> = all
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    wait_for(&mut events, timeout)?;
    if let Some(waker) = waker {
        waker.0.drain();
    }
    Ok(())
}

/// Whether any of these events was there before a signal came, or the timeout was over.
fn wait_for(events: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    match poll(events, Some(&timespec(timeout))) {
        Ok(0) | Err(Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

/// At most what every system can count: the caller looks again.
fn timespec(duration: Duration) -> Timespec {
    const LONGEST: Duration = Duration::from_secs(3600);
    duration.min(LONGEST).try_into().unwrap_or(Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    })
}

/// Whether a path is short enough to be that of a socket.
#[allow(dead_code, reason = "an engine with unix sockets uses it")]
pub(crate) fn can_be_socket(path: &Path) -> bool {
    SockAddr::unix(path).is_ok()
}

/// The addresses of a host. It blocks for as long as the system's look-up takes.
pub(crate) fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::base::sys::time;

    #[test]
    fn many_wakes_are_seen_together() {
        let waker = Waker::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let quiet = Socket::of(listener.accept().unwrap().0.into());
        let long = Duration::from_secs(600);
        for connection in [None, Some(&quiet)] {
            (0..100_000).for_each(|_| waker.wake());
            waker.wait(connection, long).unwrap();
            let began = time::now();
            while time::since(began) < Duration::from_millis(50) {
                waker.wait(connection, Duration::from_millis(100)).unwrap();
            }
            waker.wake();
            waker.wait(connection, long).unwrap();
        }
    }
}
