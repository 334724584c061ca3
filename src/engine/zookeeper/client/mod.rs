//! A session with ZooKeeper's servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) use self::failure::Failure;
pub(super) use self::ops::{Change, Changed, Code, Kind, Op, Refused, Reply, Stat};
pub(super) use self::watcher::{Told, Watcher};
use super::address::Address;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::Result;
use crate::base::options::Options;
use crate::engine::Unanswered;

mod answer;
mod failure;
mod frames;
mod jute;
mod ops;
mod request;
mod watcher;

/// What each of several requests is answered.
pub(super) type Answers = Vec<Result<Reply, Code>>;

/// A session, whose thread ends with it.
pub(super) struct Session {}

impl Session {
    /// Connects. The servers have to give sessions of just this `timeout`, which has to be four of their ticks at least;
    /// otherwise the error says what is possible.
    pub(super) fn open(
        address: Address,
        timeout: Duration,
        options: &Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let _ = (address, timeout, options, clock);
        unimplemented!()
    }

    /// Opens another session with the same servers, in place of one that has ended, or in a child that was forked off.
    pub(super) fn open_another(&self, deadline: &Deadline) -> Result<Arc<Self>, Failure> {
        let _ = deadline;
        unimplemented!()
    }

    /// For errors: where locks live, without the login.
    pub(super) fn place(&self) -> &str {
        unimplemented!()
    }

    /// The path under which all nodes are: "" or `/a/b`.
    pub(super) fn chroot(&self) -> &str {
        unimplemented!()
    }

    /// Whose nodes are this session's: see [`Stat::ephemeral_owner`].
    pub(super) fn id(&self) -> i64 {
        unimplemented!()
    }

    /// The servers' tickTime.
    pub(super) fn tick(&self) -> Duration {
        unimplemented!()
    }

    /// Sends all in one write. Each has its own answer. They are carried out in this order, and in that of calls.
    pub(super) fn call(
        &self,
        requests: &[Op],
        deadline: &Deadline,
    ) -> Result<Answers, Unanswered<Failure>> {
        let _ = (requests, deadline);
        unimplemented!()
    }

    /// The same for one request.
    pub(super) fn ask(
        &self,
        request: Op,
        deadline: &Deadline,
    ) -> Result<Result<Reply, Code>, Unanswered<Failure>> {
        let _ = (request, deadline);
        unimplemented!()
    }

    /// The servers keep the session from then on for its timeout at least. `None` once it has ended.
    pub(super) fn proven_since(&self) -> Option<BootInstant> {
        unimplemented!()
    }

    /// Asks the leader whether the session lives, and returns since when that is proven: some two ticks ago.
    pub(super) fn prove(&self, deadline: &Deadline) -> Result<BootInstant, Failure> {
        let _ = deadline;
        unimplemented!()
    }

    /// Whether it has expired, or was closed. Then another is to be opened.
    pub(super) fn has_ended(&self) -> bool {
        unimplemented!()
    }

    /// Has `tell` called, once, on the session's thread, when the session expires; at once, if it has expired. It isn't called
    /// for a session that is closed.
    pub(super) fn on_end(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _ = tell;
        unimplemented!()
    }

    /// Ends it at the servers, which delete its ephemeral nodes. When it is only dropped they do so when it expires.
    pub(super) fn close(&self, deadline: &Deadline) {
        let _ = deadline;
        unimplemented!()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
