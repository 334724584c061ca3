//! A stream socket on which every call ends by a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, SockAddr};

use super::CANCEL_LATENESS;
use crate::base::{Deadline, limits::LONGEST_SLEEP, sys};

/// A stream socket on which every call ends by a deadline, also when the peer sends a byte at a time.
///
/// A read blocks for a tick at a time, and between ticks the deadline is looked at: one system call for each
/// answer, where poll(2) would take two.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: Arc<socket2::Socket>,
    deadline: Deadline,
    /// How often a read still takes what is there after the deadline.
    late_reads: u8,
    reads: Reads,
    tick: Duration,
}

/// How many reads after the deadline take what has arrived. A thread that stood still past its deadline finds the
/// answer that came in time, and a peer that goes on sending can't keep it.
const LATE_READS: u8 = 16;

/// What a read does while there is nothing to read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reads {
    /// It waits until the deadline.
    Wait,
    /// It times out.
    TimeOut,
    /// It times out without looking: the last read took all that there was.
    TimeOutAtOnce,
}

/// Closes a socket from another thread, which ends what blocks on it.
#[derive(Debug)]
pub(crate) struct Closer(Arc<socket2::Socket>);

impl Closer {
    pub(crate) fn close(&self) {
        // It may be closed already.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

/// The end of a stream, whatever is to be read before it. Without `RDHUP` it shows only when both sides closed.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOSED: PollFlags = PollFlags::HUP;

impl Socket {
    /// Connects to the first address that answers.
    pub(crate) fn connect_tcp(addresses: &[SocketAddr], deadline: &Deadline) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for (tried, address) in addresses.iter().enumerate() {
            // One address that doesn't answer must not use up the time of the others.
            let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let share = deadline.within(deadline.remaining() / left);
            match Socket::connect(Domain::for_address(*address), &(*address).into(), &share) {
                Ok(mut socket) => {
                    socket.socket.set_tcp_nodelay(true)?;
                    socket.set_deadline(deadline);
                    return Ok(socket);
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    pub(crate) fn connect_unix(path: &Path, deadline: &Deadline) -> io::Result<Self> {
        Socket::connect(Domain::UNIX, &SockAddr::unix(path)?, deadline)
    }

    fn connect(domain: Domain, address: &SockAddr, deadline: &Deadline) -> io::Result<Self> {
        let (socket, is_connected) = sys::begin_connect(domain, address)?;
        if !is_connected {
            wait_for(&socket, PollFlags::OUT, deadline)?;
            socket.take_error()?.map_or(Ok(()), Err)?;
        }
        socket.set_nonblocking(false)?;
        Ok(Socket {
            socket: Arc::new(socket),
            deadline: deadline.clone(),
            late_reads: LATE_READS,
            reads: Reads::Wait,
            tick: Duration::ZERO,
        })
    }

    pub(crate) fn closer(&self) -> Closer {
        Closer(self.socket.clone())
    }

    /// Another handle on it, with a deadline of its own, so that one thread writes while another reads.
    pub(crate) fn another_handle(&self) -> Self {
        Socket {
            socket: self.socket.clone(),
            deadline: self.deadline.clone(),
            late_reads: LATE_READS,
            reads: Reads::Wait,
            tick: Duration::ZERO,
        }
    }

    /// Discards what wasn't delivered yet when this is closed.
    pub(crate) fn forget_unsent(&self) {
        // At worst it is delivered late.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }

    pub(crate) fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
        self.late_reads = LATE_READS;
        self.reads = Reads::Wait;
    }

    /// Until there is another deadline, a read takes what is there, and times out at once if there is nothing. After a
    /// read that took all, the next one looks at the socket only with `look_again`: so most calls need one system call.
    pub(crate) fn do_not_wait(&mut self, look_again: bool) {
        if look_again || self.reads == Reads::Wait {
            self.reads = Reads::TimeOut;
        }
    }

    /// Whether the peer has sent nothing and hasn't closed it. With `may_have_input` only its end counts.
    pub(crate) fn is_quiet(&self, may_have_input: bool) -> bool {
        let flags = if may_have_input {
            CLOSED
        } else {
            CLOSED | PollFlags::IN
        };
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        rustix::event::poll(&mut [PollFd::new(&*self.socket, flags)], Some(&now)) == Ok(0)
    }

    /// Sees to it that the next read blocks for no longer than until the deadline, of which `left` is left: for a tick,
    /// which is half of that, so that few reads have to change it.
    fn arm(&mut self, left: Duration) -> io::Result<()> {
        /// A timeout that rounds to zero would be none.
        const SHORTEST: Duration = Duration::from_millis(1);
        /// What is left of a deadline that isn't worth to be halved.
        const SHORT: Duration = Duration::from_millis(50);
        /// Deadlines further off are all alike.
        const LONG: Duration = Duration::from_secs(60);
        // A tick that was set for an earlier call is good enough when it isn't much too short. That of a call that
        // can be cancelled always is, so that such calls and others can alternate without a system call for each.
        if self.tick > left || self.tick < (left.min(LONG) / 64).min(CANCEL_LATENESS) {
            let tick = if left < SHORT {
                left
            } else {
                left.min(LONG) / 2
            };
            self.tick = tick.max(SHORTEST);
            self.socket.set_read_timeout(Some(self.tick))?;
        }
        Ok(())
    }

    /// Reads what arrived before anybody looked: the deadline is over, perhaps because this thread stood still.
    fn read_late(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.late_reads = self.late_reads.checked_sub(1).ok_or_else(timed_out)?;
        receive(&self.socket, buffer)
    }
}

fn timed_out() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "no answer in time")
}

fn wait_for(socket: &socket2::Socket, flags: PollFlags, deadline: &Deadline) -> io::Result<()> {
    loop {
        if deadline.is_over() {
            return Err(timed_out());
        }
        let mut events = [PollFd::new(socket, flags)];
        match rustix::event::poll(&mut events, Some(&timespec(super::slice(deadline)))) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Waits until there is something to read from either, or the end of it, or for `timeout`. It may return earlier.
pub(crate) fn wait_to_read(either: [BorrowedFd<'_>; 2], timeout: Duration) -> io::Result<()> {
    let mut events = either.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match rustix::event::poll(&mut events, Some(&timespec(timeout))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// At most the longest sleep: the caller looks again.
fn timespec(duration: Duration) -> Timespec {
    duration.min(LONGEST_SLEEP).try_into().unwrap_or(Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    })
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.reads == Reads::TimeOut {
            let read = receive(&self.socket, buffer)?;
            if read < buffer.len() {
                self.reads = Reads::TimeOutAtOnce;
            }
            return Ok(read);
        }
        if self.reads == Reads::TimeOutAtOnce {
            return Err(timed_out());
        }
        loop {
            let left = super::slice(&self.deadline);
            if left.is_zero() {
                return self.read_late(buffer);
            }
            self.arm(left)?;
            match (&*self.socket).read(buffer) {
                Err(e) if again(&e) => {}
                result => return result,
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(&self.socket, bytes) {
                // Its buffer is full, which takes a peer that reads nothing.
                Err(e) if again(&e) => wait_for(&self.socket, PollFlags::OUT, &self.deadline)?,
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what is there, without blocking.
fn receive(socket: &socket2::Socket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((_, read)) => return Ok(read),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(timed_out()),
            Err(e) => return Err(e.into()),
        }
    }
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Sends without blocking, and without SIGPIPE, which ends many a command-line tool.
fn send(socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
    // On Apple's systems the socket itself raises no SIGPIPE: socket2 sees to that.
    #[cfg(target_vendor = "apple")]
    let flags = SendFlags::DONTWAIT;
    #[cfg(not(target_vendor = "apple"))]
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(rustix::net::send(socket, bytes, flags)?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = Socket::connect_tcp(&[address], &Deadline::after(LONG)).unwrap();
        (socket, listener.accept().unwrap().0)
    }

    fn wait_for_input(socket: &Socket) {
        wait_for(&socket.socket, PollFlags::IN, &Deadline::after(LONG)).unwrap();
    }

    #[test]
    fn answer_that_came_before_a_late_look_is_read() {
        let (mut socket, mut peer) = pair();
        peer.write_all(b"an answer").unwrap();
        wait_for_input(&socket);
        socket.set_deadline(&Deadline::after(Duration::ZERO));
        let mut buffer = [0; 2];
        let mut answer = Vec::new();
        while let Ok(read) = socket.read(&mut buffer) {
            answer.extend_from_slice(&buffer[..read]);
        }
        assert_eq!(answer, b"an answer");
    }

    #[test]
    fn nothing_to_read_after_the_deadline_is_a_timeout() {
        let (mut socket, _peer) = pair();
        socket.set_deadline(&Deadline::after(Duration::ZERO));
        let error = socket.read(&mut [0; 2]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn peer_that_goes_on_sending_cannot_keep_a_read_past_its_deadline() {
        let (mut socket, mut peer) = pair();
        let sender = thread::spawn(move || while peer.write_all(b"and so on").is_ok() {});
        socket.set_deadline(&Deadline::after(Duration::from_millis(10)));
        let begun = Instant::now();
        let error = loop {
            if let Err(error) = socket.read(&mut [0; 1]) {
                break error;
            }
            assert!(begun.elapsed() < LONG, "it reads on and on");
        };
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        drop(socket);
        sender.join().unwrap();
    }
}
