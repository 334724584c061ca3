//! What a session is asked, and what it answers.

use std::vec;

use super::failure::{Code, Failure};
use super::watch::Watcher;

/// What a session is asked. Paths are whole: they begin with the chroot.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// One for itself. A check is only for a multi.
    Change(Change),
    /// All of them or nothing.
    Multi(Vec<Change>),
    /// Its watch tells when the node is made, changed or deleted, whether it is there or not.
    Exists {
        path: String,
        watch: Option<Watcher>,
    },
    /// Its watch tells when the node is changed or deleted. There is no watch on a node that isn't there.
    Get {
        path: String,
        watch: Option<Watcher>,
    },
    /// Its watch tells when a child is made or deleted, or the node is. There is no watch on a node that isn't there.
    Children {
        path: String,
        watch: Option<Watcher>,
    },
    /// What is asked behind it sees all that was done before it.
    Sync { path: String },
    /// Ends the session.
    Close,
}

/// What is changed. Without a version, any will do.
#[derive(Clone, Debug)]
pub(crate) enum Change {
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
pub(crate) enum Kind {
    Persistent,
    /// The servers delete it some time after its last child.
    Container,
    /// It ends with the session.
    Ephemeral,
    /// The same, and the leader puts ten digits behind its name.
    EphemeralSequential,
}

impl Op {
    pub(crate) fn exists(path: String) -> Self {
        Op::Exists { path, watch: None }
    }

    /// Watches a node, whether it is there or not.
    pub(crate) fn watch_any(path: String, watcher: Watcher) -> Self {
        Op::Exists {
            path,
            watch: Some(watcher),
        }
    }

    pub(crate) fn get(path: String) -> Self {
        Op::Get { path, watch: None }
    }

    /// Watches a node, if it is there.
    pub(crate) fn watch(path: &str, watcher: Watcher) -> Self {
        Op::Get {
            path: path.to_owned(),
            watch: Some(watcher),
        }
    }

    pub(crate) fn children(path: &str) -> Self {
        Op::Children {
            path: path.to_owned(),
            watch: None,
        }
    }

    pub(crate) fn sync(path: &str) -> Self {
        Op::Sync {
            path: path.to_owned(),
        }
    }

    pub(crate) fn delete(path: String) -> Self {
        Change::delete(path).into()
    }
}

impl Change {
    /// A node that stays.
    pub(crate) fn create(path: String, data: Vec<u8>) -> Self {
        let kind = Kind::Persistent;
        Change::Create { path, data, kind }
    }

    /// A node that ends with the session.
    pub(crate) fn create_own(path: String, data: Vec<u8>) -> Self {
        let kind = Kind::Ephemeral;
        Change::Create { path, data, kind }
    }

    pub(crate) fn set(path: String, data: Vec<u8>) -> Self {
        let version = None;
        Change::Set {
            path,
            data,
            version,
        }
    }

    pub(crate) fn delete(path: String) -> Self {
        let version = None;
        Change::Delete { path, version }
    }

    pub(crate) fn check(path: String) -> Self {
        let version = None;
        Change::Check { path, version }
    }
}

impl From<Change> for Op {
    fn from(change: Change) -> Self {
        Op::Change(change)
    }
}

/// What was asked is done, and this is what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Created {
        path: String,
        stat: Stat,
    },
    /// Nothing more that is of use.
    Done,
    Data(Vec<u8>, Stat),
    Children(Vec<String>, Stat),
    /// Of a multi.
    Multi {
        /// The paths of the nodes that were made, or why nothing of all was done. Servers don't tell the nodes' stat
        /// here.
        done: Result<Vec<String>, Refused>,
        /// The last transaction that the server knew when it answered, which is this one or a later one.
        zxid: i64,
    },
}

/// The first change that was refused, and with it all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) change: usize,
    pub(crate) code: Code,
}

/// What the servers keep of a node besides its data, as far as it is of use. Transactions are numbered by zxid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Which transaction made it.
    pub(crate) czxid: i64,
    /// When it was made, in milliseconds since 1970 by the leader's clock.
    pub(crate) ctime: i64,
    /// When its data was changed last.
    pub(crate) mtime: i64,
    /// How often its data was changed.
    pub(crate) version: i32,
    /// How often its children were.
    pub(crate) cversion: i32,
    /// The session that it ends with; 0 of other nodes.
    pub(crate) ephemeral_owner: i64,
    pub(crate) num_children: i32,
    /// Which transaction made or deleted a child last.
    pub(crate) pzxid: i64,
}

/// What a request is answered, or why the server refused it.
pub(crate) type Answer = Result<Reply, Code>;

/// The answers to several requests, in their order.
#[derive(Debug)]
pub(crate) struct Replies(vec::IntoIter<Answer>);

impl Replies {
    pub(super) fn of(answers: Vec<Answer>) -> Self {
        Replies(answers.into_iter())
    }

    pub(crate) fn next(&mut self) -> Result<Answer, Failure> {
        self.0.next().ok_or_else(Failure::misunderstood)
    }

    /// The paths of the nodes that a multi has made, or the first change that was refused, and with it all.
    pub(crate) fn multi(&mut self) -> Result<Result<Vec<String>, Refused>, Failure> {
        match self.next()?? {
            Reply::Multi { done, .. } => Ok(done),
            _ => Err(Failure::misunderstood()),
        }
    }

    /// The children of a node, and what else is known of it; `None` if there is no such node.
    pub(crate) fn children(&mut self) -> Result<Option<(Vec<String>, Stat)>, Failure> {
        self.of_node(|reply| match reply {
            Reply::Children(children, stat) => Some((children, stat)),
            _ => None,
        })
    }

    /// What a node holds; `None` if there is no such node.
    pub(crate) fn data(&mut self) -> Result<Option<(Vec<u8>, Stat)>, Failure> {
        self.of_node(|reply| match reply {
            Reply::Data(data, stat) => Some((data, stat)),
            _ => None,
        })
    }

    /// Whether there is such a node.
    pub(crate) fn exists(&mut self) -> Result<bool, Failure> {
        Ok(self.of_node(Some)?.is_some())
    }

    /// What is understood of an answer about a node; `None` if there is no such node.
    fn of_node<T>(
        &mut self,
        understand: impl FnOnce(Reply) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        match self.next()? {
            Ok(reply) => understand(reply)
                .map(Some)
                .ok_or_else(Failure::misunderstood),
            Err(Code::NO_NODE) => Ok(None),
            Err(code) => Err(code.into()),
        }
    }

    /// Of a sync.
    pub(crate) fn done(&mut self) -> Result<(), Failure> {
        self.next()??;
        Ok(())
    }
}
