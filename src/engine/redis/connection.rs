//! A connection, from its handshake on.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use ::redis::{Cmd, ServerError, Value};

use super::address::Address;
use super::failure::{Broken, Failure, said};
use super::reply::Replies;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::net::resolver::Resolver;
pub(super) use crate::engine::net::socket::Closer;
use crate::engine::net::socket::Socket;
#[cfg(feature = "tls")]
use crate::engine::net::tls::{Tls, TlsConfig};

/// Makes connections to one address.
#[derive(Debug)]
pub(super) struct Connector {
    address: Address,
    resolver: Resolver,
    #[cfg(feature = "tls")]
    tls: Option<TlsConfig>,
}

impl Connector {
    #[cfg_attr(not(feature = "tls"), expect(clippy::unnecessary_wraps))]
    pub(super) fn new(address: Address) -> Result<Self> {
        Ok(Connector {
            #[cfg(feature = "tls")]
            tls: tls_config(&address)?,
            resolver: Resolver::default(),
            address,
        })
    }

    pub(super) fn place(&self) -> &str {
        &self.address.shown
    }

    /// A connection that is ready for commands, with name lookup, TLS and login done by `deadline`.
    pub(super) fn connect(&self, deadline: &Deadline) -> Result<Connection, Broken> {
        let socket = match &self.address.endpoint {
            Endpoint::Unix(path) => Socket::connect_unix(path, deadline)?,
            Endpoint::Tcp(HostPort { host, port }) => {
                let addresses = self.resolver.resolve(host, *port, deadline)?;
                Socket::connect_tcp(&addresses, deadline)?
            }
        };
        let (stream, process) = (self.encrypted(socket)?, std::process::id());
        let mut connection = Connection {
            stream,
            replies: Replies::new(),
            process,
        };
        self.log_in(&mut connection, deadline)
            .map_err(|e| self.suspecting_tls(e))?;
        Ok(connection)
    }

    /// Hints at what a port with TLS does to the first words of who doesn't speak it: it hangs up.
    pub(super) fn suspecting_tls(&self, broken: Broken) -> Broken {
        let is_plain = !self.address.tls && matches!(self.address.endpoint, Endpoint::Tcp(_));
        match broken {
            Broken::Closed(cause) if is_plain => {
                Broken::Closed(format!("{cause}: if the port has TLS, use rediss://").into())
            }
            broken => broken,
        }
    }

    #[cfg(feature = "tls")]
    fn encrypted(&self, socket: Socket) -> io::Result<Stream> {
        match &self.tls {
            Some(config) => config.connect(socket).map(|tls| Stream::Tls(Box::new(tls))),
            None => Ok(Stream::Plain(socket)),
        }
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self)]
    fn encrypted(&self, socket: Socket) -> io::Result<Stream> {
        Ok(Stream::Plain(socket))
    }

    fn log_in(&self, connection: &mut Connection, deadline: &Deadline) -> Result<(), Broken> {
        if let Some(password) = &self.address.login.password {
            let mut auth = ::redis::cmd("AUTH");
            auth.arg(&self.address.login.user).arg(password.as_str());
            connection.require(&auth, deadline, login_failure)?;
        }
        if self.address.database != 0 {
            let mut select = ::redis::cmd("SELECT");
            select.arg(self.address.database);
            connection.require(&select, deadline, Failure::from)?;
        }
        Ok(())
    }
}

#[cfg(feature = "tls")]
fn tls_config(address: &Address) -> Result<Option<TlsConfig>> {
    match &address.endpoint {
        Endpoint::Tcp(HostPort { host, .. }) if address.tls => {
            TlsConfig::new(host, address.ca.as_deref(), &address.shown).map(Some)
        }
        _ => Ok(None),
    }
}

/// Any refusal of AUTH but "loading" is about the password: wrong, or none expected.
fn login_failure(error: ServerError) -> Failure {
    let text = said(&error);
    match Failure::from(error) {
        Failure::Other(_) => Failure::Denied(text.into()),
        failure => failure,
    }
}

/// A connection that is ready for commands. After any error it must be dropped.
pub(super) struct Connection {
    stream: Stream,
    replies: Replies,
    process: u32,
}

enum Stream {
    Plain(Socket),
    #[cfg(feature = "tls")]
    Tls(Box<Tls>),
}

impl Connection {
    /// The process that made it, and may use it.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// Whether there is nothing to read: between commands that would be its end, or the answer to a question
    /// that nobody remembers. Encrypted connections are told things unasked, so only their end counts.
    pub(super) fn is_quiet(&self) -> bool {
        match &self.stream {
            Stream::Plain(socket) => socket.is_quiet(false),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.sock.is_quiet(true),
        }
    }

    /// Sends a command that has to be answered by OK.
    fn require(
        &mut self,
        command: &Cmd,
        deadline: &Deadline,
        failure: impl FnOnce(ServerError) -> Failure,
    ) -> Result<(), Broken> {
        match self.request(&command.get_packed_command(), deadline)? {
            Value::Okay => Ok(()),
            Value::ServerError(error) => Err(Broken::Refused(failure(error))),
            _ => {
                let cause = "it doesn't answer a login as a Redis server does".into();
                Err(Broken::Refused(Failure::Other(cause)))
            }
        }
    }

    /// Sends a command and reads its answer, which may be an error, by `deadline`.
    pub(super) fn request(&mut self, command: &[u8], deadline: &Deadline) -> Result<Value, Broken> {
        self.send(command, deadline)?;
        self.replies.next(&mut self.stream)
    }

    /// Sends a command whose answer comes when it comes.
    pub(super) fn send(&mut self, command: &[u8], deadline: &Deadline) -> Result<(), Broken> {
        self.stream.set_deadline(deadline);
        self.stream.write_all(command)?;
        Ok(self.stream.flush()?)
    }

    /// Gives what the server said unasked, if it has come. A part that has come is kept. Unless there may be `new`
    /// parts, only what was read already is looked at, and what the last read left.
    pub(super) fn receive(&mut self, new: bool) -> Result<Option<Value>, Broken> {
        self.stream.do_not_wait(new);
        match self.replies.next(&mut self.stream) {
            Ok(value) => Ok(Some(value)),
            Err(Broken::TimedOut(_)) => Ok(None),
            Err(broken) => Err(broken),
        }
    }

    /// Readable when the server says something.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Plain(socket) => socket.as_fd(),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.sock.as_fd(),
        }
    }

    /// Gives up what was sent last: a late copy of it would be carried out after what is sent next elsewhere.
    pub(super) fn give_up(self) {
        match &self.stream {
            Stream::Plain(socket) => socket.forget_unsent(),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.sock.forget_unsent(),
        }
    }

    /// Closes it from another thread.
    pub(super) fn closer(&self) -> Closer {
        match &self.stream {
            Stream::Plain(socket) => socket.closer(),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.sock.closer(),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Stream {
    fn do_not_wait(&mut self, new: bool) {
        match self {
            Stream::Plain(socket) => socket.do_not_wait(new),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.sock.do_not_wait(new),
        }
    }

    fn set_deadline(&mut self, deadline: &Deadline) {
        match self {
            Stream::Plain(socket) => socket.set_deadline(deadline),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.sock.set_deadline(deadline),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.flush(),
        }
    }
}
