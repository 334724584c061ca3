//! What a session is asked.

use super::watch::Watcher;

/// What a session is asked. Paths are whole: they begin with the chroot.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// One for itself. A check is only for a multi.
    Change(Change),
    /// All of them or nothing.
    Multi(Vec<Change>),
    Exists {
        path: String,
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
    Sync {
        path: String,
    },
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
        Op::Exists { path }
    }

    pub(crate) fn get(path: String) -> Self {
        Op::Get { path, watch: None }
    }

    /// Has a node watched, if it is there.
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
