//! Transactions, and the changes that clients ask for.

use super::jute::{Reader, op};
use super::tree::{Acl, Login};

/// What is done at every server, in the order of the `zxid`.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) zxid: i64,
    /// In milliseconds, by the leader's clock.
    pub(super) time: i64,
    pub(super) session: i64,
    pub(super) logins: Vec<Login>,
    /// Why the leader refuses it before it looks at what it is.
    pub(super) refused: Option<i32>,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    OpenSession {
        timeout: i32,
    },
    CloseSession,
    /// What a client has asked for, as it was written.
    Request {
        kind: i32,
        body: Vec<u8>,
    },
    DeleteContainer {
        path: String,
    },
}

/// What happened to a node: that is what its watchers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Created,
    Deleted,
    Changed,
    /// A child of it was made or deleted.
    ChildrenChanged,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) happened: Happened,
    pub(super) path: String,
    /// Nobody is told who can't read the node.
    pub(super) acl: Acl,
}

/// What came of a transaction.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) events: Vec<Event>,
    /// Behind the head, or the error in it.
    pub(super) answer: Result<Vec<u8>, i32>,
}

/// What a client wants to have changed.
pub(super) enum Change {
    Create {
        kind: i32,
        path: String,
        data: Option<Vec<u8>>,
        acl: Acl,
        flags: i32,
    },
    Delete {
        path: String,
        version: i32,
    },
    Set {
        path: String,
        data: Option<Vec<u8>>,
        version: i32,
    },
    Check {
        path: String,
        version: i32,
    },
}

/// The flags of nodes that are made.
pub(super) mod flag {
    pub(in super::super) const EPHEMERAL: i32 = 1;
    pub(in super::super) const SEQUENTIAL: i32 = 2;
    pub(in super::super) const CONTAINER: i32 = 4;
}

impl Change {
    pub(super) fn read(kind: i32, from: &mut Reader<'_>) -> Option<Self> {
        let path = from.text()?;
        let bytes = |from: &mut Reader<'_>| Some(from.buffer()?.map(<[u8]>::to_vec));
        Some(match kind {
            op::CREATE | op::CREATE2 | op::CREATE_CONTAINER => Change::Create {
                kind,
                path,
                data: bytes(from)?,
                acl: (0..from.int()?)
                    .map(|_| Some((from.int()?, (from.text()?, from.text()?))))
                    .collect::<Option<_>>()?,
                flags: from.int()?,
            },
            op::DELETE => Change::Delete {
                path,
                version: from.int()?,
            },
            op::SET_DATA => Change::Set {
                path,
                data: bytes(from)?,
                version: from.int()?,
            },
            op::CHECK => Change::Check {
                path,
                version: from.int()?,
            },
            _ => return None,
        })
    }

    pub(super) fn read_multi(from: &mut Reader<'_>) -> Option<Vec<Self>> {
        let mut all = Vec::new();
        loop {
            let (kind, is_end, _error) = (from.int()?, from.flag()?, from.int()?);
            if is_end {
                return Some(all);
            }
            all.push(match Change::read(kind, from)? {
                // There the flags alone say what it is.
                Change::Create {
                    path,
                    data,
                    acl,
                    flags,
                    ..
                } => Change::Create {
                    kind: if flags == flag::CONTAINER {
                        op::CREATE_CONTAINER
                    } else {
                        op::CREATE
                    },
                    path,
                    data,
                    acl,
                    flags,
                },
                other => other,
            });
        }
    }
}
