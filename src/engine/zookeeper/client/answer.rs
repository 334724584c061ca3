//! What servers send, understood.

use super::jute::{Decoder, Malformed};
use super::ops::{Changed, Code, Op, Refused, Reply, Stat};
use super::request::PASSWORD;

/// What stands in front of each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) xid: i32,
    /// The last transaction that the server knew.
    pub(super) zxid: i64,
    /// 0: the answer follows.
    pub(super) error: i32,
}

/// The number in front of an event, which answers nothing.
pub(super) const EVENT_XID: i32 = -1;

/// What is about the session rather than about what was asked.
pub(super) const SESSION_EXPIRED: i32 = -112;
pub(super) const AUTH_FAILED: i32 = -115;
pub(super) const SESSION_MOVED: i32 = -118;
/// The servers want a login of another kind.
pub(super) const NO_SASL: i32 = -124;

/// The answer to a [`Hello`](super::request::Hello).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    /// In milliseconds; 0: there is no such session any more.
    pub(super) timeout: i32,
    pub(super) session: i64,
    pub(super) password: [u8; PASSWORD],
}

/// What happened to a node that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    pub(super) path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// It was made, or its data changed.
    Data,
    Deleted,
    Children,
    /// It is about no node.
    Other,
}

/// What the answer to a request is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Created,
    /// Nothing that is of use.
    Done,
    Stat,
    Data,
    Children,
    Multi {
        changes: usize,
    },
}

impl Expected {
    pub(super) fn of(op: &Op) -> Self {
        match op {
            Op::Create { .. } => Expected::Created,
            Op::Delete { .. } | Op::Sync { .. } => Expected::Done,
            Op::Exists { .. } | Op::Set { .. } => Expected::Stat,
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
            Expected::Stat => Reply::Stat(stat(record)?),
            Expected::Data => Reply::Data(record.buffer()?.to_vec(), stat(record)?),
            Expected::Children => Reply::Children(record.texts()?, stat(record)?),
            Expected::Multi { changes } => Reply::Multi(multi(record, changes)?, zxid),
        })
    }
}

pub(super) fn header(record: &mut Decoder<'_>) -> Result<Header, Malformed> {
    Ok(Header {
        xid: record.int()?,
        zxid: record.long()?,
        error: record.int()?,
    })
}

pub(super) fn welcome(frame: &[u8]) -> Result<Welcome, Malformed> {
    let mut record = Decoder::new(frame);
    let _version = record.int()?;
    let (timeout, session) = (record.int()?, record.long()?);
    let password = record.buffer()?.try_into();
    // Behind it servers from 3.4 on say whether they only read.
    Ok(Welcome {
        timeout: timeout.max(0),
        session,
        password: password.map_err(|_| Malformed("a session's password has 16 bytes"))?,
    })
}

pub(super) fn event(record: &mut Decoder<'_>) -> Result<Event, Malformed> {
    let kind = match record.int()? {
        1 | 3 => EventKind::Data,
        2 => EventKind::Deleted,
        4 => EventKind::Children,
        _ => EventKind::Other,
    };
    let _state = record.int()?;
    let path = record.text()?;
    Ok(Event { kind, path })
}

fn stat(record: &mut Decoder<'_>) -> Result<Stat, Malformed> {
    Ok(Stat {
        czxid: record.long()?,
        mzxid: record.long()?,
        ctime: record.long()?,
        mtime: record.long()?,
        version: record.int()?,
        cversion: record.int()?,
        aversion: record.int()?,
        ephemeral_owner: record.long()?,
        data_length: record.int()?,
        num_children: record.int()?,
        pzxid: record.long()?,
    })
}

/// The type of what a refused part of a multi gives.
const ERROR: i32 = -1;

fn multi(
    record: &mut Decoder<'_>,
    changes: usize,
) -> Result<Result<Vec<Changed>, Refused>, Malformed> {
    let mut all = Vec::new();
    let mut refused = None;
    for change in 0..changes {
        let (kind, is_end, _error) = (record.int()?, record.bool()?, record.int()?);
        if is_end {
            return Err(Malformed("a multi has too few answers"));
        }
        match kind {
            // Changes before the one that was refused have no error, and none was done.
            ERROR => match record.int()? {
                0 => {}
                code => {
                    let code = Code::from(code);
                    refused = refused.or(Some(Refused { change, code }));
                }
            },
            kind => all.push(changed(record, kind)?),
        }
    }
    match refused {
        Some(refused) => Ok(Err(refused)),
        None if all.len() == changes => Ok(Ok(all)),
        None => Err(Malformed("a multi has errors that are none")),
    }
}

/// Servers answer a create with its path, and some kinds of nodes with their stat, too.
fn changed(record: &mut Decoder<'_>, kind: i32) -> Result<Changed, Malformed> {
    Ok(match kind {
        2 | 13 => Changed::Done,
        5 => Changed::Stat(stat(record)?),
        1 => Changed::Created(record.text()?),
        15 | 19 => {
            let path = record.text()?;
            stat(record)?;
            Changed::Created(path)
        }
        _ => return Err(Malformed("a multi has an answer of an unknown type")),
    })
}
