//! Where locks live, behind one trait.
//!
//! This layer uses `base` alone. What is above it knows three answers: the lock is granted, it is still taken, the
//! engine can't be reached. How a waiter waits is the engine's own business, behind [`Wait`]: by messages and heartbeats
//! (Redis), by a condition variable (memory), by events of the file system (a file), and by pauses where an engine has nothing better.
//!
//! What always holds here: every call returns by its deadline, but for an engine's wait without one; to repeat any call
//! is harmless; only the owner of a lease renews or releases it.

#![cfg_attr(
    not(all(
        feature = "etcd",
        feature = "file",
        feature = "redis",
        feature = "value",
        feature = "zookeeper"
    )),
    allow(
        dead_code,
        reason = "what serves only an engine or a feature that this build leaves out"
    )
)]

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::base::backoff::Waits;
use crate::base::clock::{BootInstant, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::{Cause, Error, Result};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::base::value::Stored;

pub(crate) use self::capabilities::{Capabilities, unsupported};
pub(crate) use self::operations::{Cursor, Operations, Page, Revocations, Telling};
pub(crate) use self::requests::{Release, Released, Renewed, Request};

mod capabilities;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "file")]
mod file;
mod heartbeat;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod line;
pub(crate) mod memory;
#[cfg(feature = "_sockets")]
mod net;
pub(crate) mod open;
mod operations;
#[cfg(feature = "redis")]
mod redis;
mod requests;
mod rules;
mod url;
#[cfg(feature = "zookeeper")]
mod zookeeper;

/// Where locks live.
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// For errors: where locks live, without user and password.
    fn place(&self) -> &str;

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// The wait of one owner, who hasn't asked for anything yet. Costs no I/O.
    fn new_wait(&self) -> Box<dyn Wait>;

    /// Makes the lease last for another ttl, if it is still the owner's.
    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed>;

    /// Ends the lease, if it is still the owner's. An owner that doesn't know what it has leaves the engine's queue, too.
    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Released>;

    /// Asks whether the lock is the owner's. An engine that can ask without renewing does so.
    fn is_owner(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed> {
        self.renew(request, deadline)
    }

    /// Makes the lease that another owner has that of `request`, for a ttl, with a token above `last_used`. `None` when it
    /// wasn't the other's any more. Repeated by the new owner it is done again.
    fn adopt(
        &self,
        _request: Request<'_>,
        _from: &Owner,
        _last_used: u64,
        _deadline: &Deadline,
    ) -> Result<Option<Grant>> {
        Err(unsupported(self.place(), "passing a lock on"))
    }

    /// Called when the owner's process does nothing for its lease any more, which another is to adopt: it lasts for a ttl from now,
    /// also where leases end with their processes.
    fn give_away(&self, _request: Request<'_>, _deadline: &Deadline) -> Result<()> {
        Ok(())
    }

    /// What it does for operators, who look at names and free them.
    fn operations(&self) -> Result<&dyn Operations> {
        Err(unsupported(self.place(), "inspecting and breaking locks"))
    }

    /// What it is like here, and which promise doesn't hold. It leaves nothing behind, and shows no secret.
    fn diagnose(
        &self,
        _namespace: &Namespace,
        _options: &Options,
        _deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// Has the engine tell of leases that somebody else has ended, as far as it hears of them by itself.
    fn tell_revocations(&self, _to: Weak<dyn Revocations>) {}

    /// Copies of the open files by which the kernel knows that this owner has the lock: whoever has one of them open keeps
    /// it taken. Empty where no file is locked.
    fn lock_files(&self, _owner: &Owner) -> io::Result<Vec<File>> {
        Ok(Vec::new())
    }

    /// What it does with values, if it keeps any.
    fn values(&self) -> Result<&dyn Values> {
        Err(unsupported(self.place(), "values"))
    }

    /// What it does with names that several owners hold at once, if it can.
    fn sharing(&self) -> Result<&dyn Sharing> {
        Err(unsupported(self.place(), "read-write locks and semaphores"))
    }

    /// The engine of a child that was forked off, with connections and files of its own. `None` when this one serves both.
    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        None
    }

    /// Called when a lease is lost, or will never be released, for an engine that keeps something of it in this process. It
    /// doesn't block.
    fn forget(&self, _owner: &Owner) {}
}

/// How one owner comes to a lock: it asks, and waits in between, in the way of its engine.
///
/// It belongs to the thread that has the turn for the name, and moves with the turn to the next thread. The owner leaves
/// the engine's queue by [`Engine::release`].
pub(crate) trait Wait: Send {
    /// Asks for the lock once. The owner that has it already gets it anew, with its token. If it is taken, the owner is
    /// in the engine's queue from then on; without a pace it doesn't wait, and is in no queue.
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered>;

    /// Blocks after a question, until the lock is granted or it is time to ask again.
    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let pause = pace.next_pause().min(request.ttl / 3);
        pace.until.sleep(pause);
        None
    }
}

/// The values that locks protect.
pub(crate) trait Values {
    /// Stores the value, if the lease is still the owner's.
    fn store(&self, request: Request<'_>, value: &[u8], deadline: &Deadline)
    -> Result<StoreAnswer>;

    /// The value, whoever holds the lock.
    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored>;

    /// Deletes the value, whoever holds the lock.
    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()>;

    /// For errors: where the value is stored.
    fn value_key(&self, key: &Key) -> String;
}

/// Names that several owners hold at once.
pub(crate) trait Sharing {
    /// Turns an exclusive lease into one that reads, if it is still the owner's, and stores the value, if there is one.
    fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Option<Downgraded>>;

    /// How many permits are free, of so many.
    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32>;
}

/// The error for a user that may not do this.
fn denied(name: Option<&str>, place: &str, advice: &'static str, cause: impl Into<Cause>) -> Error {
    Error::Denied {
        name: name.map(String::from),
        engine: place.to_owned(),
        advice,
        source: cause.into(),
    }
}

/// How often, and until when, a waiter asks, by its caller's options.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    /// The pauses between questions where nothing tells the waiter of a release.
    pub(crate) backoff: &'a mut Waits,
    /// Whether the caller counts its attempts: then one is made after each of these pauses.
    pub(crate) counted: bool,
    pub(crate) until: &'a Deadline,
}

impl Pace<'_> {
    pub(crate) fn next_pause(&mut self) -> Duration {
        self.backoff.next().unwrap_or_default()
    }
}

/// The answer to a question for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted(Grant),
    /// Another holds it.
    Taken {
        /// Whether the owner waits now, in the engine's queue if it has one; not when it is to ask again at once.
        is_queued: bool,
        /// One of its holders: `<host>/<pid>/<thread>`, if the engine can say so. For the log.
        holder: Option<String>,
    },
    /// The owner had the lock by a grant that it never saw, and somebody broke it. This owner gets nothing any more, has
    /// nothing, and is in no queue: another one has to ask.
    Broken,
}

/// A lease, as an engine gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) token: Token,
    /// What the lock protects, if that was asked for.
    pub(crate) value: Option<Stored>,
    /// The engine's lease began no earlier: read before the question was sent.
    pub(crate) since: BootInstant,
}

/// A lease that reads, in place of one that was exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Downgraded {
    pub(crate) token: Token,
    /// The engine's lease began no earlier. `None`: it began anew no earlier than when it was asked.
    pub(crate) since: Option<BootInstant>,
}

impl From<Token> for Downgraded {
    /// The lease began anew.
    fn from(token: Token) -> Self {
        Downgraded { token, since: None }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Unanswered<E = Error> {
    pub(crate) error: E,
    /// Whether what was asked may have been done all the same.
    pub(crate) sent: bool,
}

impl<E> Unanswered<E> {
    pub(crate) fn unsent(error: E) -> Self {
        Unanswered { error, sent: false }
    }

    pub(crate) fn sent(error: E) -> Self {
        Unanswered { error, sent: true }
    }
}

/// The answer to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreAnswer {
    Done,
    /// Done when asked a second time: while the lease lasts, a copy of the first command may still come, and undo what the
    /// same owner stores later.
    DoneLate,
    NotOwner,
}
