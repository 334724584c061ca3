//! Transactions, and the changes that clients ask for.

use crosslock_world::service::{Connection, Host};

use super::jute::{Reader, op};

/// What a server wants to have done; and what is done at every server, in the order of the `zxid`.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) at: Host,
    /// Who is to be answered there.
    pub(super) connection: Option<Connection>,
    pub(super) zxid: i64,
    /// In milliseconds, by the leader's clock.
    pub(super) time: i64,
    pub(super) session: i64,
    /// Why the leader refuses it before it looks at what it is.
    pub(super) refused: Option<i32>,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// With that timeout.
    OpenSession(i32),
    CloseSession,
    Change(Change),
    /// All of them, or nothing.
    Multi(Vec<Change>),
    /// By its path.
    DeleteContainer(String),
}

/// What happened to a node: that is what its watchers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Created = 1,
    Deleted,
    Changed,
    /// A child of it was made or deleted.
    ChildrenChanged,
}

/// With the path of the node.
pub(super) type Event = (Happened, String);

/// What came of a transaction: events, and what is answered behind the head, or the error in it.
pub(super) type Applied = (Vec<Event>, Result<Vec<u8>, i32>);

/// What a client wants to have changed: what isn't asked for that kind of change is empty.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) kind: i32,
    pub(super) path: String,
    pub(super) data: Vec<u8>,
    /// Of a node that is made.
    pub(super) flags: i32,
    pub(super) version: i32,
}

/// The flags of nodes that are made.
pub(super) mod flag {
    pub(in super::super) const EPHEMERAL: i32 = 1;
    pub(in super::super) const SEQUENTIAL: i32 = 2;
    pub(in super::super) const CONTAINER: i32 = 4;
}

impl Action {
    /// `None`: it is no change.
    pub(super) fn read(kind: i32, from: &mut Reader<'_>) -> Option<Self> {
        match kind {
            op::CLOSE_SESSION => Some(Action::CloseSession),
            op::MULTI => {
                let mut all = Vec::new();
                loop {
                    let (kind, is_end, _error) = (from.int()?, from.flag()?, from.int()?);
                    if is_end {
                        return Some(Action::Multi(all));
                    }
                    all.push(Change::read(kind, from)?);
                }
            }
            _ => Change::read(kind, from).map(Action::Change),
        }
    }
}

impl Change {
    fn read(kind: i32, from: &mut Reader<'_>) -> Option<Self> {
        let path = from.text()?;
        let (mut data, mut flags, mut version) = (Vec::new(), 0, -1);
        if matches!(kind, op::CREATE2 | op::CREATE_CONTAINER | op::SET_DATA) {
            data = from.buffer()?.to_vec();
        }
        match kind {
            op::CREATE2 | op::CREATE_CONTAINER => {
                // Everybody has all rights.
                for _ in 0..from.int()? {
                    let _ = (from.int()?, from.text()?, from.text()?);
                }
                flags = from.int()?;
            }
            op::DELETE | op::SET_DATA | op::CHECK => version = from.int()?,
            _ => return None,
        }
        Some(Change {
            kind,
            path,
            data,
            flags,
            version,
        })
    }
}
