//! A stream socket on which every call ends by a deadline.

use std::io::{self, ErrorKind, Read, Write};
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use super::CANCEL_LATENESS;
use crate::base::{Deadline, Registration, sys::net};

/// A stream socket on which every call ends by a deadline, also when the peer sends a byte at a time.
///
/// A read blocks for a tick at a time, and between ticks the deadline is looked at: one system call for each
/// answer, where poll(2) would take two.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: Arc<net::Socket>,
    deadline: Deadline,
    /// How often a read still takes what is there after the deadline.
    late_reads: u8,
    reads: Reads,
    tick: Duration,
}

/// How many reads after the deadline take what has arrived. A thread that stood still past its deadline finds the
/// answer that came in time, and a peer that goes on sending can't keep it.
const LATE_READS: u8 = 16;

/// Deadlines further off are all alike.
const LONG: Duration = Duration::from_secs(60);

/// What a read does while there is nothing to read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reads {
    /// It waits until the deadline.
    Wait,
    /// The same. It sleeps, and a cancel closes the socket.
    Sleep,
    /// It times out.
    TimeOut,
    /// It times out without looking: the last read took all that there was.
    TimeOutAtOnce,
}

/// Closes a socket from another thread, which ends what blocks on it.
#[derive(Debug)]
pub(crate) struct Closer(Arc<net::Socket>);

impl Closer {
    pub(crate) fn close(&self) {
        self.0.shut_down();
    }
}

impl Socket {
    /// Connects to the first address that answers.
    pub(crate) fn connect_tcp(addresses: &[SocketAddr], deadline: &Deadline) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for (tried, address) in addresses.iter().enumerate() {
            // One address that doesn't answer must not use up the time of the others.
            let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let share = deadline.within(deadline.remaining() / left);
            match Socket::connect(&net::Target::Tcp(*address), &share) {
                Ok(mut socket) => {
                    socket.set_deadline(deadline);
                    return Ok(socket);
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    pub(crate) fn connect_unix(path: &Path, deadline: &Deadline) -> io::Result<Self> {
        Socket::connect(&net::Target::Unix(path), deadline)
    }

    fn connect(to: &net::Target<'_>, deadline: &Deadline) -> io::Result<Self> {
        let (socket, is_connected) = net::Socket::begin_connect(to)?;
        if !is_connected {
            wait_until(deadline, |slice| socket.await_connected(slice))?;
        }
        socket.finish_connect(matches!(to, net::Target::Tcp(_)))?;
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

    /// For what waits for it together with something else.
    pub(crate) fn inner(&self) -> &net::Socket {
        &self.socket
    }

    /// Discards what wasn't delivered yet when this is closed.
    pub(crate) fn forget_unsent(&self) {
        self.socket.forget_unsent();
    }

    pub(crate) fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
        self.late_reads = LATE_READS;
        self.reads = Reads::Wait;
    }

    /// The same, for a connection that is dropped when the deadline is cancelled: a read sleeps until then.
    pub(crate) fn sleep_until(&mut self, deadline: &Deadline) {
        self.set_deadline(deadline);
        self.reads = Reads::Sleep;
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
        self.socket.is_quiet(may_have_input)
    }

    /// Ends a read that sleeps when its deadline is cancelled. `None` if it has to look at the deadline now and then.
    fn close_on_cancel(&self) -> Option<Registration> {
        let may_sleep = self.reads == Reads::Sleep && !self.deadline.is_moved();
        let cancel = self.deadline.cancel();
        let cancel = cancel.filter(|cancel| may_sleep && cancel.wakes())?;
        let (closer, cancelled) = (self.closer(), cancel.clone());
        let close = move || {
            if cancelled.is_set() {
                closer.close();
            }
        };
        Some(cancel.on_set(Arc::new(close)))
    }

    /// Sees to it that the next read blocks for no longer than until the deadline, of which `left` is left: for a tick,
    /// which is half of that, so that few reads have to change it. It is long enough if it isn't shorter than half of
    /// `most`.
    fn arm(&mut self, left: Duration, most: Duration) -> io::Result<()> {
        /// A timeout that rounds to zero would be none.
        const SHORTEST: Duration = Duration::from_millis(1);
        /// What is left of a deadline that isn't worth to be halved.
        const SHORT: Duration = Duration::from_millis(50);
        if self.tick > left || self.tick < left.min(most) / 2 {
            let tick = if left < SHORT {
                left
            } else {
                left.min(LONG) / 2
            };
            self.tick = tick.max(SHORTEST);
            self.socket.set_read_timeout(self.tick)?;
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

/// Waits until it came, as `comes_within` says of the next slice of the time.
fn wait_until(
    deadline: &Deadline,
    comes_within: impl Fn(Duration) -> io::Result<bool>,
) -> io::Result<()> {
    while !deadline.is_over() {
        if comes_within(super::slice(deadline))? {
            return Ok(());
        }
    }
    Err(timed_out())
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
        // Only a read that takes long pays for this.
        let mut closes: Option<Registration> = None;
        loop {
            // A tick that was set for an earlier call is good enough when it isn't much too short. That of a call that
            // can be cancelled always is, so that such calls and others can alternate without a system call for each.
            let (left, most) = match closes {
                Some(_) => (self.deadline.remaining(), LONG / 4),
                None => (super::slice(&self.deadline), CANCEL_LATENESS),
            };
            if left.is_zero() {
                return self.read_late(buffer);
            }
            self.arm(left, most)?;
            match self.socket.read(buffer) {
                Err(e) if again(&e) => closes = closes.or_else(|| self.close_on_cancel()),
                _ if closes.is_some() && self.deadline.is_cancelled() => return Err(timed_out()),
                result => return result,
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.socket.write_now(bytes) {
                // Its buffer is full, which takes a peer that reads nothing.
                Err(e) if again(&e) => {
                    wait_until(&self.deadline, |slice| self.socket.await_writable(slice))?;
                }
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what is there, without blocking.
fn receive(socket: &net::Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let read = socket.read_now(buffer);
    read.map_err(|e| if again(&e) { timed_out() } else { e })
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::base::Cancel;

    const LONG: Duration = Duration::from_secs(20);

    fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = Socket::connect_tcp(&[address], &Deadline::after(LONG)).unwrap();
        (socket, listener.accept().unwrap().0)
    }

    fn wait_for_input(socket: &Socket) {
        let waker = net::Waker::new().unwrap();
        while socket.is_quiet(false) {
            waker.wait(Some(socket.inner()), LONG).unwrap();
        }
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
    fn wait_behind_a_short_one_does_not_wake_each_millisecond() {
        let (mut socket, _peer) = pair();
        for left in [CANCEL_LATENESS, CANCEL_LATENESS * 4, LONG] {
            socket
                .arm(Duration::from_millis(1), CANCEL_LATENESS)
                .unwrap();
            socket.arm(left, CANCEL_LATENESS).unwrap();
            assert!(
                socket.tick * 2 >= left.min(CANCEL_LATENESS),
                "{left:?}: {:?}",
                socket.tick
            );
        }
    }

    #[test]
    fn long_read_does_not_wake_each_few_milliseconds_and_ends_when_it_is_cancelled() {
        let ((mut socket, _peer), cancel) = (pair(), Cancel::default());
        socket.sleep_until(&Deadline::after(LONG).or(&cancel));
        let reader = thread::spawn(move || {
            let error = socket.read(&mut [0; 1]).unwrap_err();
            (error.kind(), socket.tick)
        });
        thread::sleep(CANCEL_LATENESS * 8);
        let begun = Instant::now();
        cancel.set();
        let (kind, tick) = reader.join().unwrap();
        assert!(begun.elapsed() < LONG / 4, "it isn't woken");
        assert_eq!(kind, ErrorKind::TimedOut);
        assert!(tick > LONG / 4, "{tick:?}");
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
