//! A client of etcd by its JSON gateway: requests over HTTP/1.1, each of which ends by its deadline.
//!
//! It uses `base`, `engine::net` and the address of its servers, and knows nothing of locks. What always holds here: a
//! connection is closed after any failure on it; what changes something is sent again only if no server has begun with it.

use std::sync::Arc;

use self::failure::Failure;
use self::txn::{Answer, LeaseId, Range, Txn};
use self::watch::Watch;
use super::address::Address;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::Result;
use crate::base::options::Options;
use crate::engine::Unanswered;

pub(super) mod failure;
pub(super) mod txn;
pub(super) mod watch;

/// A client of the servers of one URL.
#[derive(Debug)]
pub(super) struct Client {
    address: Address,
}

/// A lease that was just granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) lease: LeaseId,
    /// For how long: the servers may give more than what was asked.
    pub(super) seconds: u64,
    /// It lasts from then on: read before it was asked for.
    pub(super) since: BootInstant,
}

/// What was found when a lease was kept alive.
#[derive(Clone, Debug)]
pub(super) struct KeptAlive {
    /// The lease lasts from then on; `None`: it is gone.
    pub(super) since: Option<BootInstant>,
    /// What was looked at, after it was kept alive.
    pub(super) answer: Answer,
}

/// What a host says of itself and its cluster.
#[derive(Clone, Debug)]
pub(super) struct Status {
    /// The host that was asked, with its port.
    pub(super) host: String,
    pub(super) found: Result<MemberStatus, String>,
}

/// What a member says of itself and its cluster.
#[derive(Clone, Debug)]
pub(super) struct MemberStatus {
    /// Such as `3.5.17`.
    pub(super) version: String,
    pub(super) member: u64,
    /// The member that leads, if one does.
    pub(super) leader: Option<u64>,
    pub(super) term: u64,
    pub(super) revision: u64,
    /// The size of its database, in bytes.
    pub(super) size: u64,
    pub(super) is_learner: bool,
    /// Such as that its database is full: the servers' words.
    pub(super) errors: Vec<String>,
}

impl Client {
    /// Costs no I/O but that of reading certificates.
    pub(super) fn new(
        address: Address,
        _options: &Options,
        _clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        Ok(Client { address })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        todo!()
    }

    /// For errors: the URL, without user and password.
    pub(super) fn place(&self) -> &str {
        &self.address.shown
    }

    /// What all keys begin with, before a `/`; empty without.
    pub(super) fn root(&self) -> &str {
        &self.address.root
    }

    pub(super) fn transact(
        &self,
        _txn: &Txn,
        _deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        todo!()
    }

    pub(super) fn grant_lease(
        &self,
        _seconds: u64,
        _deadline: &Deadline,
    ) -> Result<Granted, Failure> {
        todo!()
    }

    /// Ends a lease, with all keys that it has; a transaction that comes later with it is refused. One that is gone already is
    /// fine.
    pub(super) fn revoke(&self, _lease: LeaseId, _deadline: &Deadline) -> Result<(), Failure> {
        todo!()
    }

    /// Keeps the lease alive, and then carries out `look`, which only reads, and reads one key at least.
    pub(super) fn keep_alive(
        &self,
        _lease: LeaseId,
        _look: &Txn,
        _deadline: &Deadline,
    ) -> Result<KeptAlive, Failure> {
        todo!()
    }

    /// Watches for deletions, and `puts` if asked for, from that revision on.
    pub(super) fn watch(
        &self,
        _range: &Range,
        _puts: bool,
        _from: u64,
        _deadline: &Deadline,
    ) -> Result<Watch, Failure> {
        todo!()
    }

    /// Asks each host of the URL.
    pub(super) fn status(&self, _deadline: &Deadline) -> Vec<Status> {
        todo!()
    }
}
