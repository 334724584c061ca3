//! What clients say, and what they are answered.

use std::collections::VecDeque;

use crosslock_world::service::{Connection, Host, Io};

use super::ZooKeeper;
use super::change::Action;
use super::jute::{Reader, Writer, op};
use super::member::{Role, ToLeader};

/// A connection, as its server has it.
#[derive(Default)]
pub(super) struct Client {
    pub(super) at: Host,
    input: Vec<u8>,
    pub(super) phase: Phase,
    pub(super) session: i64,
    pub(super) timeout: i32,
    /// What isn't answered, in the order of the answers.
    pub(super) waiting: VecDeque<Waiting>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    New,
    /// Its handshake isn't answered. Nothing is read meanwhile.
    Opening,
    Open,
}

pub(super) enum Waiting {
    /// The answer comes from the leader. That to a sync has the path of the sync.
    Ordered { xid: i32, path: Vec<u8> },
    /// It is answered here, behind what stands before it.
    Local { xid: i32, kind: i32, body: Vec<u8> },
}

/// What a server answers by itself.
const LOOKS: [i32; 5] = [
    op::EXISTS,
    op::GET_DATA,
    op::GET_CHILDREN2,
    op::PING,
    op::SYNC,
];

impl Client {
    pub(super) fn new(at: Host) -> Self {
        Client {
            at,
            ..Client::default()
        }
    }

    /// The next frame, if it is whole. An error: it can't be one.
    fn frame(&mut self) -> Result<Option<Vec<u8>>, ()> {
        const LONGEST: usize = 0xf_ffff;
        let Some((length, rest)) = self.input.split_first_chunk() else {
            return Ok(None);
        };
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| ())?;
        if length > LONGEST {
            return Err(());
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = frame.to_vec();
        self.input.drain(..4 + length);
        Ok(Some(frame))
    }
}

impl ZooKeeper {
    pub(super) fn take(&mut self, io: &mut Io<'_>, connection: Connection, bytes: &[u8]) {
        if let Some(client) = self.clients.get_mut(&connection) {
            client.input.extend(bytes);
        }
        self.feed(io, connection);
    }

    /// Takes all frames that have come.
    fn feed(&mut self, io: &mut Io<'_>, connection: Connection) {
        while let Some(client) = self.clients.get_mut(&connection) {
            if client.phase == Phase::Opening {
                return;
            }
            let is_new = client.phase == Phase::New;
            let at = client.at;
            let taken = match client.frame() {
                Ok(None) => return,
                Ok(Some(frame)) if self.members[at].serves() => match is_new {
                    true => self.shake_hands(io, connection, &frame),
                    false => self.request(io, connection, &frame),
                },
                Ok(Some(_)) | Err(()) => None,
            };
            if taken.is_none() {
                self.hang_up(io, connection);
            }
        }
    }

    /// `None`: it is refused.
    fn shake_hands(&mut self, io: &mut Io<'_>, connection: Connection, frame: &[u8]) -> Option<()> {
        let mut record = Reader(frame);
        let (_version, seen, timeout) = (record.int()?, record.long()?, record.int()?);
        let (session, given) = (record.long()?, record.buffer()?);
        let client = self.clients.get_mut(&connection)?;
        let at = client.at;
        if seen > self.members[at].tree.zxid {
            return None;
        }
        let tick = i32::try_from(self.tick.as_millis()).ok()?;
        let timeout = timeout.clamp(2 * tick, 20 * tick);
        client.phase = Phase::Opening;
        (client.timeout, client.session) = (timeout, session);
        if session == 0 {
            let session = self.next_session(at);
            self.clients.get_mut(&connection)?.session = session;
            self.propose(io, connection, Action::OpenSession(timeout));
            return Some(());
        }
        // One that had it before is left.
        let before = self.clients.iter();
        let before = before
            .filter(|(other, one)| **other != connection && one.at == at && one.session == session);
        for other in before.map(|(other, _)| *other).collect::<Vec<_>>() {
            self.hang_up(io, other);
        }
        if given != password(session) {
            self.welcome(io, connection, false);
            return Some(());
        }
        self.tell_leader(io, at, ToLeader::Validate(connection, session, timeout));
        Some(())
    }

    /// Answers the handshake.
    pub(super) fn welcome(&mut self, io: &mut Io<'_>, connection: Connection, is_valid: bool) {
        let Some(client) = self.clients.get_mut(&connection) else {
            return;
        };
        let mut record = Writer::default();
        match is_valid {
            true => {
                record.int(0).int(client.timeout).long(client.session);
                record.buffer(&password(client.session))
            }
            false => record.int(0).int(0).long(0).buffer(&[0; 16]),
        };
        client.phase = Phase::Open;
        io.send(connection, record.flag(false).frame());
        match is_valid {
            true => self.feed(io, connection),
            false => self.hang_up(io, connection),
        }
    }

    /// `None`: it is no request.
    fn request(&mut self, io: &mut Io<'_>, connection: Connection, frame: &[u8]) -> Option<()> {
        let mut record = Reader(frame);
        let (xid, kind) = (record.int()?, record.int()?);
        let body = record.0.to_vec();
        let client = self.clients.get_mut(&connection)?;
        let (at, session, timeout) = (client.at, client.session, client.timeout);
        self.touch(io, at, session, timeout);
        let waiting = &mut self.clients.get_mut(&connection)?.waiting;
        if kind == op::SYNC && matches!(self.members[at].role, Role::Following(_)) {
            waiting.push_back(Waiting::Ordered { xid, path: body });
            self.tell_leader(io, at, ToLeader::Sync(connection));
        } else if LOOKS.contains(&kind) {
            waiting.push_back(Waiting::Local { xid, kind, body });
            self.answer_local(io, connection);
        } else {
            let action = Action::read(kind, &mut record)?;
            let path = Vec::new();
            waiting.push_back(Waiting::Ordered { xid, path });
            self.propose(io, connection, action);
        }
        Some(())
    }

    pub(super) fn hang_up(&mut self, io: &mut Io<'_>, connection: Connection) {
        self.forget(connection);
        io.close(connection);
    }

    pub(super) fn forget(&mut self, connection: Connection) {
        if let Some(client) = self.clients.remove(&connection) {
            self.members[client.at].watches.forget(connection);
        }
    }
}

/// By which a server knows a session again.
fn password(session: i64) -> [u8; 16] {
    let mut password = [0x5a; 16];
    password[..8].copy_from_slice(&session.to_be_bytes());
    password
}
