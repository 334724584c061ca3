//! A connection, from its handshake on, and what goes out on it in one write with a command.
//!
//! Behind commands that replicas must have, WAIT asks whether enough of them have what these wrote. It proves nothing
//! of a command that wrote nothing: replicas may have all that this connection wrote, and lack what another has. So
//! what must be on replicas is written by each copy of its command, or isn't believed.

use std::time::{Duration, Instant};
use std::{fmt, io::Write, sync::Arc};

use ::redis::{ServerError, Value};

use super::failure::{Failure, said};
use super::quorum::voter::Voter;
use super::reply::Replies;
use super::script::{Command, SameConnection};
use super::settings::{Kind, Replicas, Settings};
use super::shortfall::Shortfall;
use crate::base::{Deadline, sys::net::Socket, sys::time};
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::net::{self, stream::Stream};

/// Makes connections to one server.
#[derive(Debug)]
pub(super) struct Connector {
    streams: net::connector::Connector,
    settings: Arc<Settings>,
}

impl Connector {
    /// Fails if the host can have no certificate.
    pub(super) fn new(endpoint: Endpoint, settings: Arc<Settings>) -> Result<Self, Failure> {
        let tls = match (&endpoint, &settings.trust) {
            (Endpoint::Tcp(HostPort { host, .. }), Some(trust)) => Some(trust.in_server(host)?),
            _ => None,
        };
        Ok(Connector {
            streams: net::connector::Connector::new(endpoint, tls),
            settings,
        })
    }

    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self, settings: Arc<Settings>) -> Self {
        Connector {
            streams: self.streams.after_fork(settings.trust.as_ref()),
            settings,
        }
    }

    /// A connection that is ready for commands, with name lookup, TLS and login done by `deadline`.
    pub(super) fn connect(&self, deadline: &Deadline) -> Result<Connection, Failure> {
        let mut connection = Connection {
            stream: self.streams.connect(deadline)?,
            replies: Replies::new(),
            awaited: 0,
            wanted: 0,
            silent_since: None,
            voter: None,
            scripts: Vec::new(),
        };
        self.log_in(&mut connection, deadline)
            .map_err(|e| self.suspecting_tls(e))?;
        Ok(connection)
    }

    /// Adds a hint to the error of a connection that was closed at once: a server that expects TLS hangs up on plain
    /// text, and one that asks for a certificate on clients that show none.
    pub(super) fn suspecting_tls(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Closed(cause) if self.streams.is_plain_tcp() => {
                let scheme = self.settings.tls_scheme();
                Failure::Closed(format!("{cause}: if the port has TLS, use {scheme}://").into())
            }
            Failure::Closed(cause) if self.wants_certificate() => {
                let hint = "if the server requires a client certificate, use ?cert=FILE&key=FILE";
                Failure::Closed(format!("{cause}: {hint}").into())
            }
            failure => failure,
        }
    }

    /// Whether a server with TLS may miss a certificate.
    fn wants_certificate(&self) -> bool {
        self.settings.trust.is_some() && !self.settings.has_certificate
    }

    /// Sends all that a new connection begins with in one write.
    fn log_in(&self, connection: &mut Connection, deadline: &Deadline) -> Result<(), Failure> {
        let Settings {
            kind,
            login,
            database,
            ..
        } = &*self.settings;
        let mut commands = Vec::new();
        // What each answer has to be.
        let mut checks: Vec<fn(Value) -> Result<(), Failure>> = Vec::new();
        if let Some(password) = &login.password {
            let mut auth = ::redis::cmd("AUTH");
            auth.arg(&login.user).arg(password.as_str());
            auth.write_packed_command(&mut commands);
            checks.push(|answer| is_ok(answer, login_failure));
        }
        if *database != 0 {
            let mut select = ::redis::cmd("SELECT");
            select.arg(database).write_packed_command(&mut commands);
            checks.push(|answer| is_ok(answer, Failure::from));
        }
        if *kind == Kind::Sentinel {
            ::redis::cmd("ROLE").write_packed_command(&mut commands);
            checks.push(is_master);
        }
        let is_voter = *kind == Kind::Quorum;
        if is_voter {
            Voter::ask(&mut commands);
        }
        let answers = checks.len() + if is_voter { 2 } else { 0 };
        if answers == 0 {
            return Ok(());
        }
        connection.send(&commands, answers, deadline)?;
        for check in checks {
            check(connection.reply()?)?;
        }
        if is_voter {
            let said = [connection.reply()?, connection.reply()?];
            connection.voter = Some(Voter::of(said, self.settings.rejoin)?);
        }
        Ok(())
    }
}

fn is_ok(answer: Value, failure: impl FnOnce(ServerError) -> Failure) -> Result<(), Failure> {
    match answer {
        Value::Okay => Ok(()),
        Value::ServerError(error) => Err(failure(error)),
        _ => {
            let cause = "it doesn't answer a login like a Redis server".into();
            Err(Failure::Other(cause))
        }
    }
}

/// What Sentinel calls the master may have become a replica since, or be one still.
fn is_master(role: Value) -> Result<(), Failure> {
    match role {
        Value::ServerError(error) => Err(error.into()),
        Value::Array(parts) if parts.first() == Some(&Value::BulkString(b"master".to_vec())) => {
            Ok(())
        }
        _ => Err(Failure::Demoted("it isn't a master".into())),
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

/// A connection that is ready for commands. After any error it must be dropped, but for a timeout of an answer that is
/// still [awaited](Connection::is_awaited).
pub(super) struct Connection {
    stream: Stream,
    replies: Replies,
    /// How many answers are to come to what was sent.
    awaited: usize,
    /// How many of them, which come last, are those of the last command. The callers of the others have gone.
    wanted: usize,
    /// Since when the first of them is missing.
    silent_since: Option<Instant>,
    /// Of a server of a quorum.
    voter: Option<Voter>,
    /// The scripts that it was sent in full, of a server of a quorum.
    scripts: Vec<usize>,
}

impl Connection {
    /// Whether there is nothing to read: between commands that would be its end, or the late reply to a command whose
    /// caller has gone.
    pub(super) fn is_quiet(&self) -> bool {
        self.stream.is_quiet()
    }

    /// Sends a command and reads its answer, which may be an error, by `deadline`.
    pub(super) fn request(
        &mut self,
        command: &[u8],
        deadline: &Deadline,
    ) -> Result<Value, Failure> {
        self.send(command, 1, deadline)?;
        self.reply()
    }

    /// The next answer to what was sent last, by its deadline.
    pub(super) fn reply(&mut self) -> Result<Value, Failure> {
        loop {
            let value = self.replies.next(&mut self.stream)?;
            if self.is_wanted() {
                return Ok(value);
            }
        }
    }

    /// The same, if it is here.
    pub(super) fn reply_now(&mut self) -> Result<Option<Value>, Failure> {
        loop {
            let value = self.receive(true)?;
            if value.is_none() || self.is_wanted() {
                return Ok(value);
            }
        }
    }

    /// Counts an answer that came.
    fn is_wanted(&mut self) -> bool {
        let is_wanted = !self.has_unwanted();
        self.awaited = self.awaited.saturating_sub(1);
        self.silent_since = (self.awaited > 0).then(time::now);
        is_wanted
    }

    /// Whether the server answers it all in step: what it still has to answer is no harm, and is read off as far as it
    /// is here.
    pub(super) fn is_in_step(&mut self) -> bool {
        while self.awaited > 0 {
            match self.reply_now() {
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        self.is_quiet()
    }

    /// For how long the server has owed an answer.
    pub(super) fn silent_for(&self, now: Instant) -> Duration {
        let since = self.silent_since;
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    pub(super) fn voter(&self) -> Option<Voter> {
        self.voter
    }

    /// Whether a script goes out on it for the first time, as far as the server is known to have kept the others.
    pub(super) fn is_first(&mut self, script: usize) -> bool {
        let is_first = !self.scripts.contains(&script);
        if is_first {
            self.scripts.push(script);
        }
        is_first
    }

    /// The server has lost its scripts.
    pub(super) fn forget_scripts(&mut self) {
        self.scripts.clear();
    }

    /// Fails where the server may not grant anything yet.
    pub(super) fn check_vote(&self, command: &dyn Command) -> Result<(), Failure> {
        let asks = matches!(command.same_connection(), SameConnection::Asks(_));
        match self.voter {
            Some(voter) if asks && !voter.votes() => {
                let cause = "it was restarted recently and doesn't vote yet: see `rejoin`";
                Err(Failure::Abstains(cause.into()))
            }
            _ => Ok(()),
        }
    }

    /// Whether all that was sent is on its way, and an answer is missing.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// Whether answers are missing to commands whose callers have gone.
    pub(super) fn has_unwanted(&self) -> bool {
        self.awaited > self.wanted
    }

    /// Sends commands. The caller reads this number of answers, and nobody waits for earlier ones.
    pub(super) fn send(
        &mut self,
        commands: &[u8],
        answers: usize,
        deadline: &Deadline,
    ) -> Result<(), Failure> {
        // After what was sent in part nothing is awaited: the connection is of no use.
        let unwanted = std::mem::take(&mut self.awaited);
        self.stream.socket_mut().set_deadline(deadline);
        self.stream.write_all(commands)?;
        self.stream.flush()?;
        (self.wanted, self.awaited) = (answers, unwanted + answers);
        self.silent_since.get_or_insert_with(time::now);
        Ok(())
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
    pub(super) fn socket(&self) -> &Socket {
        self.stream.socket().inner()
    }

    /// Closes it, and what was sent last isn't delivered any more, as far as that can be helped: the server would carry
    /// out a late copy after the command that follows on another connection.
    pub(super) fn give_up(self) {
        self.stream.socket().forget_unsent();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// How a command is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Plain,
    /// To the node that takes the slot over, which refuses it otherwise.
    Asking,
}

/// A value, and whether enough replicas have what came with it.
pub(super) type Replied = (Value, Option<Shortfall>);

/// One command, and by when it is answered at the latest.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) command: &'a dyn Command,
    pub(super) manner: Manner,
    pub(super) deadline: &'a Deadline,
}

impl Request<'_> {
    pub(super) fn exchange(
        &self,
        settings: &Settings,
        connection: &mut Connection,
        reply_by: &Deadline,
    ) -> Result<Replied, Failure> {
        let needed = settings.replicas.filter(|_| self.command.is_for_replicas());
        let reply_by = reply_by.within(settings.io_timeout);
        let send =
            |packed, connection: &mut Connection| self.send(packed, needed, connection, &reply_by);
        let replied = send(self.command.packed(), connection)?;
        if !is_unknown_script(&replied.0) {
            return Ok(replied);
        }
        match self.command.in_full() {
            Some(full) => send(full, connection),
            None => Ok(replied),
        }
    }

    /// Sends it with what goes along in the same write, and reads all that is answered.
    fn send(
        &self,
        mut packed: Vec<u8>,
        needed: Option<Replicas>,
        connection: &mut Connection,
        deadline: &Deadline,
    ) -> Result<Replied, Failure> {
        let is_asking = self.manner == Manner::Asking;
        if is_asking {
            let mut asking = ::redis::cmd("ASKING").get_packed_command();
            asking.append(&mut packed);
            packed = asking;
        }
        if let Some(replicas) = needed {
            replicas.append_wait(&mut packed, deadline);
        }
        let beside = usize::from(is_asking) + usize::from(needed.is_some());
        connection.send(&packed, self.command.length() + beside, deadline)?;
        if is_asking {
            connection.reply()?;
        }
        let value = match self.command.length() {
            1 => connection.reply()?,
            length => {
                let values = (0..length).map(|_| connection.reply());
                Value::Array(values.collect::<Result<_, _>>()?)
            }
        };
        let Some(replicas) = needed else {
            return Ok((value, None));
        };
        let acknowledged = connection.reply()?;
        // What came of the command itself says more than that WAIT was refused, too.
        let shortfall = match value {
            Value::ServerError(_) => None,
            _ => replicas.shortfall(acknowledged)?,
        };
        Ok((value, shortfall))
    }
}

pub(super) fn is_unknown_script(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.code() == "NOSCRIPT")
}
