//! A watch of keys, on a connection of its own.

use super::failure::Failure;
use crate::base::clock::Deadline;

/// A watch of keys. Dropped, it ends at the servers, too.
#[derive(Debug)]
pub(in crate::engine::etcd) struct Watch {}

/// A key was put or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) struct Event {
    pub(in crate::engine::etcd) key: Vec<u8>,
    pub(in crate::engine::etcd) deleted: bool,
    /// At which that was.
    pub(in crate::engine::etcd) revision: u64,
}

impl Watch {
    /// Blocks until there are events, or until then: then there are none. After a failure it tells of nothing any more.
    pub(in crate::engine::etcd) fn next(
        &mut self,
        _until: &Deadline,
    ) -> Result<Vec<Event>, Failure> {
        todo!()
    }
}
