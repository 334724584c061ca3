//! What a session is asked, and what it answers.

use std::fmt;

use super::watcher::Watcher;

/// What a session is asked. Paths are whole: they begin with the chroot.
#[derive(Clone, Debug)]
pub(in crate::engine::zookeeper) enum Op {
    Create {
        path: String,
        data: Vec<u8>,
        kind: Kind,
    },
    /// Of that version, or of any.
    Delete { path: String, version: Option<i32> },
    /// Its watch tells when the node is made, changed or deleted, also if there is none.
    Exists {
        path: String,
        watch: Option<Watcher>,
    },
    /// Its watch tells when the node is changed or deleted. There is no watch on a node that isn't there.
    Get {
        path: String,
        watch: Option<Watcher>,
    },
    Set {
        path: String,
        data: Vec<u8>,
        version: Option<i32>,
    },
    /// Its watch tells when a child is made or deleted, or the node is. There is no watch on a node that isn't there.
    Children {
        path: String,
        watch: Option<Watcher>,
    },
    /// What is asked behind it sees all that was done before it.
    Sync { path: String },
    /// All of it or nothing.
    Multi(Vec<Change>),
}

/// A part of an [`Op::Multi`].
#[derive(Clone, Debug)]
pub(in crate::engine::zookeeper) enum Change {
    Create {
        path: String,
        data: Vec<u8>,
        kind: Kind,
    },
    Delete {
        path: String,
        version: Option<i32>,
    },
    Set {
        path: String,
        data: Vec<u8>,
        version: Option<i32>,
    },
    /// Refuses all, if the node isn't there, or has another version.
    Check {
        path: String,
        version: Option<i32>,
    },
}

/// How long a node lasts, and who names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::zookeeper) enum Kind {
    Persistent,
    /// The servers delete it some time after its last child.
    Container,
    /// It ends with the session.
    Ephemeral,
    /// The same, and the leader puts ten digits behind its name.
    EphemeralSequential,
}

/// What was asked is done, and this is what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::zookeeper) enum Reply {
    Created {
        path: String,
        stat: Stat,
    },
    /// Of a delete and a sync.
    Done,
    /// Of an exists and a set.
    Stat(Stat),
    Data(Vec<u8>, Stat),
    Children(Vec<String>, Stat),
    /// What each change gave, or why nothing of all was done; and the last transaction that the server knew when it answered, which
    /// is this one or a later one.
    Multi(Result<Vec<Changed>, Refused>, i64),
}

/// What a part of an [`Op::Multi`] gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::zookeeper) enum Changed {
    /// A node of this path. Servers don't tell its stat here: an [`Op::Exists`] behind the multi does.
    Created(String),
    /// Of a delete and a check.
    Done,
    Stat(Stat),
}

/// The first change that was refused, and with it all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::zookeeper) struct Refused {
    pub(in crate::engine::zookeeper) change: usize,
    pub(in crate::engine::zookeeper) code: Code,
}

/// What the servers keep of a node besides its data. Transactions are numbered by zxid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine::zookeeper) struct Stat {
    /// Which transaction made it.
    pub(in crate::engine::zookeeper) czxid: i64,
    /// Which transaction changed its data last.
    pub(in crate::engine::zookeeper) mzxid: i64,
    /// When it was made, in milliseconds since 1970 by the leader's clock.
    pub(in crate::engine::zookeeper) ctime: i64,
    /// When its data was changed last.
    pub(in crate::engine::zookeeper) mtime: i64,
    /// How often its data was changed.
    pub(in crate::engine::zookeeper) version: i32,
    /// How often its children were.
    pub(in crate::engine::zookeeper) cversion: i32,
    pub(in crate::engine::zookeeper) aversion: i32,
    /// The session that it ends with; 0 of other nodes.
    pub(in crate::engine::zookeeper) ephemeral_owner: i64,
    pub(in crate::engine::zookeeper) data_length: i32,
    pub(in crate::engine::zookeeper) num_children: i32,
    /// Which transaction made or deleted a child last.
    pub(in crate::engine::zookeeper) pzxid: i64,
}

/// Why a server refused what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::zookeeper) enum Code {
    NoNode,
    NodeExists,
    BadVersion,
    NotEmpty,
    /// The node's rights don't let this user do it.
    NoAuth,
    /// A node that ends with its session has no children.
    NoChildrenForEphemerals,
    /// The rights name nobody: there is no login.
    InvalidAcl,
    /// The path isn't one.
    BadArguments,
    /// The server doesn't know the operation.
    Unimplemented,
    QuotaExceeded,
    Other(i32),
}

impl From<i32> for Code {
    fn from(code: i32) -> Self {
        match code {
            -6 => Code::Unimplemented,
            -8 => Code::BadArguments,
            -101 => Code::NoNode,
            -102 => Code::NoAuth,
            -103 => Code::BadVersion,
            -108 => Code::NoChildrenForEphemerals,
            -110 => Code::NodeExists,
            -111 => Code::NotEmpty,
            -114 => Code::InvalidAcl,
            -125 => Code::QuotaExceeded,
            other => Code::Other(other),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Code::NoNode => "there is no such node",
            Code::NodeExists => "the node is there already",
            Code::BadVersion => "the node has another version",
            Code::NotEmpty => "the node has children",
            Code::NoAuth => "the node's ACL doesn't let this user do it",
            Code::NoChildrenForEphemerals => "an ephemeral node has no children",
            Code::InvalidAcl => "the ACL isn't valid: nobody is logged in",
            Code::BadArguments => "the server doesn't take the path",
            Code::Unimplemented => "the server doesn't know the operation: it is too old",
            Code::QuotaExceeded => "the quota is used up",
            Code::Other(code) => return write!(f, "the server answers with error {code}"),
        })
    }
}

impl std::error::Error for Code {}
