//! What servers answer, but for transactions.

use super::failure::Failure;
use super::proof::Seen;
use super::txn::{Answer, LeaseId};
use crate::base::clock::BootInstant;

/// A lease that was just granted.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::etcd) struct Granted {
    pub(in crate::engine::etcd) lease: LeaseId,
    /// For how long: the servers may give more than what was asked.
    pub(in crate::engine::etcd) seconds: u64,
    /// It lasts from then on: read before it was asked for.
    pub(in crate::engine::etcd) since: BootInstant,
}

/// What was found when a lease was kept alive.
#[derive(Clone, Debug)]
pub(in crate::engine::etcd) struct KeptAlive {
    /// The lease lasts from then on; `None`: it is gone.
    pub(in crate::engine::etcd) since: Option<BootInstant>,
    /// What was looked at, after it was kept alive.
    pub(in crate::engine::etcd) answer: Answer,
}

/// A member has said that it has kept a lease alive. If it answers a read in the same term afterwards, the lease lasts from then on:
/// see `proof`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) struct Touched {
    pub(in crate::engine::etcd) lease: LeaseId,
    pub(in crate::engine::etcd) since: BootInstant,
    /// It knew so before, too.
    pub(in crate::engine::etcd) by: Seen,
}

/// What a host says of itself and its cluster, or why it says nothing.
#[derive(Debug)]
pub(in crate::engine::etcd) struct Status {
    /// The host that was asked, with its port.
    pub(in crate::engine::etcd) host: String,
    pub(in crate::engine::etcd) found: Result<MemberStatus, Failure>,
}

/// What a member says of itself and its cluster.
#[derive(Clone, Debug)]
pub(in crate::engine::etcd) struct MemberStatus {
    /// Such as `3.5.17`.
    pub(in crate::engine::etcd) version: String,
    pub(in crate::engine::etcd) member: u64,
    /// The member that leads, if one does.
    pub(in crate::engine::etcd) leader: Option<u64>,
    pub(in crate::engine::etcd) term: u64,
    pub(in crate::engine::etcd) revision: u64,
    /// The size of its database, in bytes.
    pub(in crate::engine::etcd) size: u64,
    pub(in crate::engine::etcd) is_learner: bool,
    /// Such as that its database is full: the servers' words.
    pub(in crate::engine::etcd) errors: Vec<String>,
}

/// A key was put or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::etcd) struct Event {
    pub(in crate::engine::etcd) key: Vec<u8>,
    pub(in crate::engine::etcd) deleted: bool,
    /// At which that was.
    pub(in crate::engine::etcd) revision: u64,
}
