//! A connection, from its handshake on.

use std::fmt;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use ::redis::{Cmd, ServerError, Value};

use super::address::Address;
use super::failure::{Failure, said};
use super::reply::Replies;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::engine::net;
use crate::engine::net::address::{Endpoint, HostPort, Login};
pub(super) use crate::engine::net::socket::Closer;
use crate::engine::net::stream::Stream;
use crate::engine::net::tls::TlsConfig;

/// Makes connections to one server.
#[derive(Debug)]
pub(super) struct Connector {
    streams: net::connector::Connector,
    login: Login,
    database: u32,
    shown: String,
}

impl Connector {
    pub(super) fn new(address: Address) -> Result<Self> {
        let tls = match &address.endpoint {
            Endpoint::Tcp(HostPort { host, .. }) if address.tls => {
                let ca = address.ca.as_deref();
                Some(TlsConfig::new(host, ca, &address.shown)?)
            }
            Endpoint::Tcp(_) | Endpoint::Unix(_) => None,
        };
        Ok(Connector {
            streams: net::connector::Connector::new(address.endpoint, tls),
            login: address.login,
            database: address.database,
            shown: address.shown,
        })
    }

    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self) -> Self {
        Connector {
            streams: self.streams.after_fork(),
            login: self.login.clone(),
            database: self.database,
            shown: self.shown.clone(),
        }
    }

    /// For errors: the URL without user and password.
    pub(super) fn place(&self) -> &str {
        &self.shown
    }

    /// A connection that is ready for commands, with name lookup, TLS and login done by `deadline`.
    pub(super) fn connect(&self, deadline: &Deadline) -> Result<Connection, Failure> {
        let mut connection = Connection {
            stream: self.streams.connect(deadline)?,
            replies: Replies::new(),
        };
        self.log_in(&mut connection, deadline)
            .map_err(|e| self.suspecting_tls(e))?;
        Ok(connection)
    }

    /// Adds a hint to the error of a connection that was closed at once: a server that expects TLS hangs up on plain
    /// text.
    pub(super) fn suspecting_tls(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Closed(cause) if self.streams.is_plain_tcp() => {
                Failure::Closed(format!("{cause}: if the port has TLS, use rediss://").into())
            }
            failure => failure,
        }
    }

    fn log_in(&self, connection: &mut Connection, deadline: &Deadline) -> Result<(), Failure> {
        if let Some(password) = &self.login.password {
            let mut auth = ::redis::cmd("AUTH");
            auth.arg(&self.login.user).arg(password.as_str());
            connection.require(&auth, deadline, login_failure)?;
        }
        if self.database != 0 {
            let mut select = ::redis::cmd("SELECT");
            select.arg(self.database);
            connection.require(&select, deadline, Failure::from)?;
        }
        Ok(())
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
}

impl Connection {
    /// Whether there is nothing to read: between commands that would be its end, or the late reply to a command whose
    /// caller has gone.
    pub(super) fn is_quiet(&self) -> bool {
        self.stream.is_quiet()
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.stream.is_encrypted()
    }

    /// The server's address; `None` of a unix socket.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.stream.socket().peer()
    }

    /// Sends a command that has to be answered by OK.
    fn require(
        &mut self,
        command: &Cmd,
        deadline: &Deadline,
        failure: impl FnOnce(ServerError) -> Failure,
    ) -> Result<(), Failure> {
        match self.request(&command.get_packed_command(), deadline)? {
            Value::Okay => Ok(()),
            Value::ServerError(error) => Err(failure(error)),
            _ => {
                let cause = "it doesn't answer a login as a Redis server does".into();
                Err(Failure::Other(cause))
            }
        }
    }

    /// Sends a command and reads its answer, which may be an error, by `deadline`.
    pub(super) fn request(
        &mut self,
        command: &[u8],
        deadline: &Deadline,
    ) -> Result<Value, Failure> {
        self.send(command, deadline)?;
        self.replies.next(&mut self.stream)
    }

    /// Sends a command whose answer comes when it comes.
    pub(super) fn send(&mut self, command: &[u8], deadline: &Deadline) -> Result<(), Failure> {
        self.stream.socket_mut().set_deadline(deadline);
        self.stream.write_all(command)?;
        Ok(self.stream.flush()?)
    }

    /// Returns what the server has sent unasked; `None` when no whole reply has arrived. A part of one is kept. The
    /// socket is looked at after a read that took all only with `look_again`.
    pub(super) fn receive(&mut self, look_again: bool) -> Result<Option<Value>, Failure> {
        self.stream.socket_mut().do_not_wait(look_again);
        match self.replies.next(&mut self.stream) {
            Ok(value) => Ok(Some(value)),
            Err(Failure::TimedOut(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Readable when the server has sent something.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.socket().as_fd()
    }

    /// Closes it, and what was sent last isn't delivered any more, as far as that can be helped: the server would carry
    /// out a late copy after the command that follows on another connection.
    pub(super) fn give_up(self) {
        self.stream.socket().forget_unsent();
    }

    /// What closes it from another thread.
    pub(super) fn closer(&self) -> Closer {
        self.stream.socket().closer()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
