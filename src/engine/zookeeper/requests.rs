//! Requests that several parts make.

use super::client::{Changed, Op, Refused, Watcher};
use super::replies::Trouble;

pub(super) fn sync(path: &str) -> Op {
    Op::Sync {
        path: path.to_owned(),
    }
}

pub(super) fn children(path: &str) -> Op {
    Op::Children {
        path: path.to_owned(),
        watch: None,
    }
}

pub(super) fn get(path: String) -> Op {
    Op::Get { path, watch: None }
}

/// What has a node watched, if it is there.
pub(super) fn watched(path: &str, watcher: Watcher) -> Op {
    Op::Get {
        path: path.to_owned(),
        watch: Some(watcher),
    }
}

pub(super) fn delete(path: String) -> Op {
    let version = None;
    Op::Delete { path, version }
}

/// Parts of a transaction, of any version.
pub(super) mod change {
    use crate::engine::zookeeper::client::{Change, Kind};

    pub(in crate::engine::zookeeper) fn create(path: String, data: Vec<u8>) -> Change {
        let kind = Kind::Persistent;
        Change::Create { path, data, kind }
    }

    pub(in crate::engine::zookeeper) fn set(path: String, data: Vec<u8>) -> Change {
        let version = None;
        Change::Set {
            path,
            data,
            version,
        }
    }

    pub(in crate::engine::zookeeper) fn delete(path: String) -> Change {
        let version = None;
        Change::Delete { path, version }
    }
}

/// Where no part of it is expected to be refused.
pub(super) fn refused(done: Result<Vec<Changed>, Refused>) -> Result<Vec<Changed>, Trouble> {
    done.map_err(|refused| Trouble::Refused(refused.code))
}
