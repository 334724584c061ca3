//! A connection, from its handshake on.

use super::answer::{AUTH_FAILED, Welcome, header, welcome};
use super::failure::Failure;
use super::frames::Frames;
use super::jute::Decoder;
use super::request::{AUTH_XID, Hello, login};
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::engine::net::connector::Connector;
use crate::engine::net::halves::ReadHalf;
use crate::engine::net::stream::why_closed;
use crate::engine::zookeeper::address::Auth;

/// A connection that a server has welcomed. After any error it must be dropped.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) reader: ReadHalf,
    pub(super) frames: Frames,
    pub(super) welcome: Welcome,
    /// Read before the handshake was sent.
    pub(super) sent: BootInstant,
    /// Read after it was answered.
    pub(super) answered: BootInstant,
}

/// What a server is told first, and what follows at once.
#[derive(Debug)]
pub(super) struct Greeting<'a> {
    pub(super) hello: Hello,
    pub(super) auth: Option<&'a Auth>,
}

impl Connection {
    /// Connects, and shakes hands, with name lookup, TLS and login, by `deadline`.
    pub(super) fn open(
        host: &Connector,
        greeting: &Greeting<'_>,
        clock: &dyn Clock,
        deadline: &Deadline,
    ) -> Result<Self, Failure> {
        let mut reader = ReadHalf::of(host.connect(deadline)?)?;
        let mut bytes = greeting.hello.frame();
        bytes.extend(greeting.auth.map(login).unwrap_or_default());
        // Read before sending: what the servers count from is no earlier.
        let sent = clock.now();
        let written = reader.writer().write_all(&bytes);
        written.map_err(|e| why_closed(e, &mut reader))?;
        let mut frames = Frames::default();
        let welcome = welcome(&next(&mut frames, &mut reader)?)?;
        if greeting.auth.is_some() && welcome.timeout > 0 {
            log_in(&next(&mut frames, &mut reader)?)?;
        }
        Ok(Connection {
            reader,
            frames,
            welcome,
            sent,
            answered: clock.now(),
        })
    }
}

/// The next frame, by the deadline that the reader has.
fn next(frames: &mut Frames, reader: &mut ReadHalf) -> Result<Vec<u8>, Failure> {
    frames.next(reader)?.ok_or(Failure::TimedOut)
}

fn log_in(answer: &[u8]) -> Result<(), Failure> {
    let header = header(&mut Decoder::new(answer))?;
    match header.error {
        0 if header.xid == AUTH_XID => Ok(()),
        AUTH_FAILED => Err(Failure::Denied("the servers refuse this login".into())),
        _ => Err(Failure::Other(
            "it doesn't answer a login as a ZooKeeper server does".into(),
        )),
    }
}
