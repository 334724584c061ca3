//! What is sent and received, as bytes: what each operation comes to, and what its answer has. Names of records and
//! their order are in ZooKeeper's `zookeeper.jute`.

use super::failure::Code;
use super::jute::{Decoder, Encoder, Malformed};
use super::ops::{Change, Kind, Op, Refused, Reply, Stat};
use super::watch::{Event, Watched};
use crate::engine::zookeeper::address::Auth;

/// Servers hang up on a longer request: it is their `jute.maxbuffer`, as they come.
pub(super) const LONGEST_REQUEST: usize = 0xf_ffff;

/// The number in front of a login's answer.
pub(super) const AUTH_XID: i32 = -4;

/// The number in front of an event, which answers nothing.
pub(super) const EVENT_XID: i32 = -1;

/// Errors that are about the session rather than about what was asked.
pub(super) const SESSION_EXPIRED: i32 = -112;
pub(super) const AUTH_FAILED: i32 = -115;
pub(super) const SESSION_MOVED: i32 = -118;
/// The servers want a login of another kind.
pub(super) const NO_SASL: i32 = -124;

/// The requests' numbers in ZooKeeper's `ZooDefs.OpCode`.
mod code {
    /// Of a refused part of a multi.
    pub(super) const ERROR: i32 = -1;
    pub(super) const CREATE: i32 = 1;
    pub(super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const SET_DATA: i32 = 5;
    pub(super) const SYNC: i32 = 9;
    pub(super) const GET_CHILDREN2: i32 = 12;
    pub(super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const AUTH: i32 = 100;
    pub(super) const CLOSE_SESSION: i32 = -11;
}

/// The rights on the nodes that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acl {
    /// Whoever reaches the servers.
    World,
    /// Whoever has the login that made them.
    Creator,
}

/// What a connection begins with, and its answer, which has no last transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    /// The last transaction that was seen: a server that is behind it refuses.
    pub(super) last_zxid: i64,
    /// In milliseconds. A server answers 0 where there is no such session any more.
    pub(super) timeout: i32,
    /// 0 asks for a new session.
    pub(super) session: i64,
    pub(super) password: [u8; PASSWORD],
}

/// The length of a session's password.
const PASSWORD: usize = 16;

impl Handshake {
    /// Asks for a new session.
    pub(super) fn new(timeout: i32) -> Self {
        Handshake {
            last_zxid: 0,
            timeout,
            session: 0,
            password: [0; PASSWORD],
        }
    }

    pub(super) fn frame(&self) -> Vec<u8> {
        let mut record = Encoder::default();
        record.int(0).long(self.last_zxid).int(self.timeout);
        record.long(self.session).buffer(&self.password);
        // Not a server that has lost its leader and serves what it has.
        framed(record.bool(false))
    }

    pub(super) fn answer(frame: &[u8]) -> Result<Self, Malformed> {
        let mut record = Decoder::new(frame);
        let _version = record.int()?;
        let (timeout, session) = (record.int()?, record.long()?);
        let password = record.buffer()?.try_into();
        // Behind it servers from 3.4 on say whether they only read.
        Ok(Handshake {
            last_zxid: 0,
            timeout: timeout.max(0),
            session,
            password: password.map_err(|_| Malformed("a session's password has 16 bytes"))?,
        })
    }
}

/// Logs a connection in.
pub(super) fn login(auth: &Auth) -> Vec<u8> {
    let mut record = Encoder::default();
    record.int(AUTH_XID).int(code::AUTH).int(0);
    record.text(&auth.scheme);
    framed(record.text(auth.credentials.as_str()))
}

/// What is asked with no number yet: see [`number`].
pub(super) fn frame(op: &Op, acl: Acl) -> Vec<u8> {
    let mut record = Encoder::default();
    record.int(0);
    match op {
        Op::Change(change) => {
            record.int(code_of(change));
            write(&mut record, change, acl);
        }
        Op::Multi(changes) => {
            record.int(code::MULTI);
            for change in changes {
                record.int(code_of(change)).bool(false).int(-1);
                write(&mut record, change, acl);
            }
            record.int(-1).bool(true).int(-1);
        }
        Op::Exists { path, watch } => {
            let record = record.int(code::EXISTS);
            record.text(path).bool(watch.is_some());
        }
        Op::Get { path, watch } => {
            let record = record.int(code::GET_DATA);
            record.text(path).bool(watch.is_some());
        }
        Op::Children { path, watch } => {
            let record = record.int(code::GET_CHILDREN2);
            record.text(path).bool(watch.is_some());
        }
        Op::Sync { path } => {
            record.int(code::SYNC).text(path);
        }
        Op::Close => {
            record.int(code::CLOSE_SESSION);
        }
    }
    framed(&mut record)
}

/// Numbers a frame that [`frame`] has made.
pub(super) fn number(frame: &mut [u8], xid: i32) {
    if let Some(field) = frame.get_mut(4..8) {
        field.copy_from_slice(&xid.to_be_bytes());
    }
}

fn code_of(change: &Change) -> i32 {
    match change {
        Change::Create { kind, .. } if *kind == Kind::Container => code::CREATE_CONTAINER,
        Change::Create { .. } => code::CREATE2,
        Change::Delete { .. } => code::DELETE,
        Change::Set { .. } => code::SET_DATA,
        Change::Check { .. } => code::CHECK,
    }
}

fn write(record: &mut Encoder, change: &Change, acl: Acl) {
    const ALL_RIGHTS: i32 = 31;
    let version = match change {
        Change::Create { path, data, kind } => {
            let (scheme, id) = match acl {
                Acl::World => ("world", "anyone"),
                Acl::Creator => ("auth", ""),
            };
            record.text(path).buffer(data);
            record.length(1).int(ALL_RIGHTS).text(scheme).text(id);
            record.int(match kind {
                Kind::Persistent => 0,
                Kind::Ephemeral => 1,
                Kind::EphemeralSequential => 3,
                Kind::Container => 4,
            });
            return;
        }
        Change::Delete { path, version } | Change::Check { path, version } => {
            record.text(path);
            version
        }
        Change::Set {
            path,
            data,
            version,
        } => {
            record.text(path).buffer(data);
            version
        }
    };
    record.int(version.unwrap_or(-1));
}

fn framed(record: &mut Encoder) -> Vec<u8> {
    let record = record.finish();
    Encoder::default().buffer(&record).finish()
}

/// What stands in front of each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) xid: i32,
    /// The last transaction that the server knew.
    pub(super) zxid: i64,
    /// 0: the answer follows.
    pub(super) error: i32,
}

pub(super) fn header(record: &mut Decoder<'_>) -> Result<Header, Malformed> {
    Ok(Header {
        xid: record.int()?,
        zxid: record.long()?,
        error: record.int()?,
    })
}

/// What happened to which node. `None`: it is about no node.
pub(super) fn event(record: &mut Decoder<'_>) -> Result<Option<(Event, String)>, Malformed> {
    let event = match record.int()? {
        1 | 3 => Some(Event::Changed(Watched::Data)),
        2 => Some(Event::Deleted),
        4 => Some(Event::Changed(Watched::Children)),
        _ => None,
    };
    let _state = record.int()?;
    let path = record.text()?;
    Ok(event.map(|event| (event, path)))
}

/// What the answer to a request is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Created,
    Done,
    Data,
    Children,
    Multi { changes: usize },
}

impl Expected {
    pub(super) fn of(op: &Op) -> Self {
        match op {
            Op::Change(Change::Create { .. }) => Expected::Created,
            Op::Change(_) | Op::Exists { .. } | Op::Sync { .. } | Op::Close => Expected::Done,
            Op::Get { .. } => Expected::Data,
            Op::Children { .. } => Expected::Children,
            Op::Multi(changes) => Expected::Multi {
                changes: changes.len(),
            },
        }
    }

    /// Understands the rest of an answer that has no error.
    pub(super) fn decode(self, record: &mut Decoder<'_>, zxid: i64) -> Result<Reply, Malformed> {
        Ok(match self {
            Expected::Created => {
                let (path, stat) = (record.text()?, stat(record)?);
                Reply::Created { path, stat }
            }
            Expected::Done => Reply::Done,
            Expected::Data => Reply::Data(record.buffer()?.to_vec(), stat(record)?),
            Expected::Children => Reply::Children(record.texts()?, stat(record)?),
            Expected::Multi { changes } => {
                let done = multi(record, changes)?;
                Reply::Multi { done, zxid }
            }
        })
    }
}

fn stat(record: &mut Decoder<'_>) -> Result<Stat, Malformed> {
    let (czxid, _mzxid) = (record.long()?, record.long()?);
    let (ctime, mtime) = (record.long()?, record.long()?);
    let (version, cversion, _aversion) = (record.int()?, record.int()?, record.int()?);
    let (ephemeral_owner, _data_length) = (record.long()?, record.int()?);
    let (num_children, pzxid) = (record.int()?, record.long()?);
    Ok(Stat {
        czxid,
        ctime,
        mtime,
        version,
        cversion,
        ephemeral_owner,
        num_children,
        pzxid,
    })
}

fn multi(
    record: &mut Decoder<'_>,
    changes: usize,
) -> Result<Result<Vec<String>, Refused>, Malformed> {
    let (mut made, mut count) = (Vec::new(), 0);
    let mut refused = None;
    for change in 0..changes {
        let (kind, is_end, _error) = (record.int()?, record.bool()?, record.int()?);
        if is_end {
            return Err(Malformed("a multi has too few answers"));
        }
        match kind {
            // Changes before the one that was refused have no error, and none was done.
            code::ERROR => match record.int()? {
                0 => {}
                code => {
                    let code = Code(code);
                    refused = refused.or(Some(Refused { change, code }));
                }
            },
            kind => {
                made.extend(created(record, kind)?);
                count += 1;
            }
        }
    }
    match refused {
        Some(refused) => Ok(Err(refused)),
        None if count == changes => Ok(Ok(made)),
        None => Err(Malformed("a multi has errors that are none")),
    }
}

/// The path of the node that a part of a multi has made, if it made one. Servers answer some kinds of nodes with
/// their stat, too.
fn created(record: &mut Decoder<'_>, kind: i32) -> Result<Option<String>, Malformed> {
    let path = match kind {
        code::DELETE | code::CHECK => return Ok(None),
        code::CREATE => return record.text().map(Some),
        code::CREATE2 | code::CREATE_CONTAINER => Some(record.text()?),
        code::SET_DATA => None,
        _ => return Err(Malformed("a multi has an answer of an unknown type")),
    };
    stat(record)?;
    Ok(path)
}
