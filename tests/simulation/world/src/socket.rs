//! The clients' end of connections, as crosslock's door to the system has it.

use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::events::nanos;
use crate::network::{LinkEnd, LinkState};
use crate::scheduler::{Inside, block, may_yield, me, with};
use crate::service::Connection;
use crate::sync::WaitId;
use crate::time;

/// Where a socket is to be connected.
#[derive(Debug)]
pub enum Target<'a> {
    Tcp(SocketAddr),
    Unix(&'a Path),
}

/// A connection's end.
#[derive(Debug)]
pub struct Socket {
    connection: Connection,
    read_timeout: AtomicU64,
    forgets_unsent: AtomicBool,
}

impl Socket {
    /// # Errors
    ///
    /// No host has that address.
    pub fn begin_connect(to: &Target<'_>) -> io::Result<(Self, bool)> {
        may_yield();
        let Target::Tcp(address) = to else {
            return Err(ErrorKind::NotFound.into());
        };
        let connection = with(|inside| inside.connect(address, me()));
        let connection = connection.ok_or(ErrorKind::NetworkUnreachable)?;
        let socket = Socket {
            connection,
            read_timeout: AtomicU64::new(u64::MAX),
            forgets_unsent: AtomicBool::new(false),
        };
        Ok((socket, false))
    }

    /// # Errors
    ///
    /// None.
    pub fn await_connected(&self, timeout: Duration) -> io::Result<bool> {
        Ok(self.await_news(timeout, |inside, connection| {
            let link = inside.network.link(connection);
            link.is_none_or(|link| link.state != LinkState::Connecting)
        }))
    }

    /// # Errors
    ///
    /// The host refused it.
    pub fn finish_connect(&self, _is_tcp: bool) -> io::Result<()> {
        let state = with(|inside| inside.network.link(self.connection).map(|link| link.state));
        match state {
            Some(LinkState::Open) => Ok(()),
            _ => Err(ErrorKind::ConnectionRefused.into()),
        }
    }

    /// # Errors
    ///
    /// None.
    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.read_timeout.store(nanos(timeout), Ordering::Relaxed);
        Ok(())
    }

    /// # Errors
    ///
    /// Nothing came in time, or the connection is broken.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        may_yield();
        let timeout = Duration::from_nanos(self.read_timeout.load(Ordering::Relaxed));
        self.await_news(timeout, is_readable);
        self.read_now(buffer)
    }

    /// # Errors
    ///
    /// Nothing is there, or the connection is broken.
    pub fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        with(|inside| {
            let link = inside.network.link(self.connection);
            let link = link.ok_or(ErrorKind::ConnectionReset)?;
            let read = buffer.len().min(link.came.len());
            if read > 0 {
                link.came.read_exact(&mut buffer[..read])?;
                return Ok(read);
            }
            match link.end {
                Some(LinkEnd::Closed) => Ok(0),
                Some(LinkEnd::Reset) => Err(ErrorKind::ConnectionReset.into()),
                None => Err(ErrorKind::WouldBlock.into()),
            }
        })
    }

    /// # Errors
    ///
    /// There is no room, or the connection is broken.
    pub fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        may_yield();
        with(|inside| {
            let link = inside.network.link(self.connection);
            let link = link.ok_or(ErrorKind::BrokenPipe)?;
            if link.end == Some(LinkEnd::Reset) {
                return Err(ErrorKind::BrokenPipe.into());
            }
            if !link.has_room() {
                return Err(ErrorKind::WouldBlock.into());
            }
            Ok(inside.send_to_host(self.connection, bytes))
        })
    }

    /// # Errors
    ///
    /// None.
    pub fn await_writable(&self, timeout: Duration) -> io::Result<bool> {
        Ok(self.await_news(timeout, |inside, connection| {
            let link = inside.network.link(connection);
            link.is_none_or(|link| link.has_room() || link.end.is_some())
        }))
    }

    #[must_use]
    pub fn is_quiet(&self, may_have_input: bool) -> bool {
        with(|inside| {
            let link = inside.network.link(self.connection);
            link.is_some_and(|link| link.end.is_none() && (may_have_input || link.came.is_empty()))
        })
    }

    pub fn forget_unsent(&self) {
        self.forgets_unsent.store(true, Ordering::Relaxed);
    }

    pub fn shut_down(&self) {
        with(|inside| inside.close(self.connection, false));
    }

    /// Whether it came to be in time.
    fn await_news(&self, timeout: Duration, is_there: fn(&mut Inside, Connection) -> bool) -> bool {
        let deadline = time::now().checked_add(timeout);
        loop {
            let news = with(|inside| {
                let is_there = is_there(inside, self.connection);
                let news = inside.network.link(self.connection).map(|link| link.news);
                news.filter(|_| !is_there)
            });
            let Some(news) = news else {
                return true;
            };
            let left = deadline.map(|deadline| deadline.saturating_duration_since(time::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            let until = left.map(|left| with(|inside| time::due_in(inside, left)));
            block(Some(news), until);
        }
    }
}

fn is_readable(inside: &mut Inside, connection: Connection) -> bool {
    let link = inside.network.link(connection);
    link.is_none_or(|link| !link.came.is_empty() || link.end.is_some())
}

impl Drop for Socket {
    fn drop(&mut self) {
        let at_once = self.forgets_unsent.load(Ordering::Relaxed);
        with(|inside| inside.close(self.connection, at_once));
    }
}

/// Wakes a thread that may also wait for a connection.
#[derive(Debug)]
pub struct Waker {
    was_woken: AtomicBool,
    id: WaitId,
}

impl Waker {
    /// # Errors
    ///
    /// None.
    pub fn new() -> io::Result<Self> {
        Ok(Waker {
            was_woken: AtomicBool::new(false),
            id: WaitId::new(),
        })
    }

    pub fn wake(&self) {
        self.was_woken.store(true, Ordering::Relaxed);
        self.id.wake(true);
        may_yield();
    }

    /// # Errors
    ///
    /// None.
    pub fn wait(&self, connection: Option<&Socket>, timeout: Duration) -> io::Result<()> {
        await_any(connection, Some(self), timeout)
    }
}

/// Blocks until one of them is readable, or the waker was woken.
///
/// # Errors
///
/// None.
pub fn await_any<'a>(
    connections: impl IntoIterator<Item = &'a Socket>,
    waker: Option<&Waker>,
    timeout: Duration,
) -> io::Result<()> {
    may_yield();
    let own = WaitId::new();
    let id = waker.map_or(&own, |waker| &waker.id).get();
    let mut is_readable = false;
    for socket in connections {
        is_readable |= with(|inside| {
            if let Some(link) = inside.network.link(socket.connection) {
                link.waker = Some(id);
            }
            self::is_readable(inside, socket.connection)
        });
    }
    let was_woken = waker.is_some_and(|waker| waker.was_woken.load(Ordering::Relaxed));
    if !is_readable && !was_woken {
        let until = with(|inside| time::due_in(inside, timeout));
        block(Some(id), Some(until));
    }
    if let Some(waker) = waker {
        waker.was_woken.store(false, Ordering::Relaxed);
    }
    Ok(())
}

/// The addresses of a host, after a while.
///
/// # Errors
///
/// The name isn't known, or looking it up fails.
pub fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    time::sleep(Duration::from_micros(300));
    let found = with(|inside| inside.network.look_up(host));
    let found = found.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "no such host"))?;
    Ok(found
        .into_iter()
        .map(|address| SocketAddr::new(address, port))
        .collect())
}
