//! Where locks live, behind two traits.
//!
//! This layer uses `base` alone. What is above it knows three answers: the lock is granted, it is still taken, the
//! engine can't be reached. How a waiter waits is the engine's own business, behind [`Wait`]: by messages and
//! heartbeats (Redis), by a condition variable (memory), by events of the file system (a file), and by pauses where an
//! engine has nothing better.
//!
//! What always holds here: every call returns by its deadline, but for an engine's wait without one; to repeat any call
//! is harmless; only the owner of a lease renews or releases it.

#![cfg_attr(
    not(all(
        feature = "delay",
        feature = "etcd",
        feature = "file",
        feature = "redis",
        feature = "value",
        feature = "zookeeper",
        not(windows)
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "what serves only an engine or a feature that this build leaves out"
    )
)]

use std::sync::{Arc, Weak};
use std::{fmt, fs::File, io, time::Duration};

pub(crate) use self::change::{Answer, Change, Done, Gone, Grant, Outcome, Release, Request};
use crate::base::{
    Cause, Deadline, Error, Finding, Holder, Inspection, Key, LostReason, Mode, Namespace, Options,
    Owner, Prefer, Result, Stored, TaskAnswer, TaskCall, Waits, sys::sync::Mutex,
    token::HAND_OVERS,
};

mod change;
mod contended;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(all(feature = "file", not(windows)))]
mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(feature = "redis")]
mod heartbeat;
mod line;
pub(crate) mod memory;
#[cfg(feature = "_sockets")]
mod net;
pub(crate) mod open;
#[cfg(feature = "redis")]
mod redis;
mod rules;
mod url;
#[cfg(feature = "zookeeper")]
mod zookeeper;

/// Where locks live.
///
/// The engine of a unit test has an endpoint, a wait and changes.
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// Where locks live, for errors and logs: a URL without user and password.
    fn endpoint(&self) -> &str;

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// The wait of one owner, who hasn't asked for anything yet. Costs no I/O.
    fn new_wait(&self) -> Box<dyn Wait>;

    /// Changes the lease, if it is still the owner's, which the same command checks. To repeat it is harmless. An error
    /// leaves open whether it was done.
    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome>;

    /// How a name stands. Takes nothing.
    fn inspect(&self, _key: &Key, _deadline: &Deadline) -> Result<Inspection> {
        Err(unsupported(self.endpoint(), "inspecting locks"))
    }

    /// Some of a namespace's names in use, with a prefix. The first page has the default cursor. A name may be on two
    /// pages.
    fn list(&self, _of: (&Namespace, &str), _cursor: Cursor, _deadline: &Deadline) -> Result<Page> {
        Err(unsupported(self.endpoint(), "listing locks"))
    }

    /// Ends all leases of a name, counts its token up, and lets in the next. Says who had them.
    fn break_lock(&self, _key: &Key, _deadline: &Deadline) -> Result<Vec<Holder>> {
        Err(unsupported(self.endpoint(), "breaking locks"))
    }

    /// How many permits are free, of so many.
    fn free_permits(&self, _key: &Key, _of: u32, _deadline: &Deadline) -> Result<u32> {
        Err(unsupported(self.endpoint(), "semaphores"))
    }

    /// The value, whoever holds the lock.
    fn load(&self, _key: &Key, _deadline: &Deadline) -> Result<Stored> {
        Err(unsupported(self.endpoint(), "values"))
    }

    /// Reads the value again, once all servers have it that must confirm it. `None` where [`load`](Self::load) reads
    /// nothing else.
    fn confirm(&self, _key: &Key, _deadline: &Deadline) -> Result<Option<Stored>> {
        Ok(None)
    }

    /// Hears of changes of the value. Costs no I/O.
    fn watch(&self, _key: &Key) -> Result<Box<dyn Watch>> {
        Err(unsupported(self.endpoint(), "values"))
    }

    /// Deletes the value, whoever holds the lock.
    fn remove(&self, _key: &Key, _deadline: &Deadline) -> Result<()> {
        Err(unsupported(self.endpoint(), "values"))
    }

    /// Does something with the tasks of a delay queue. A worker gets one by a [`Wait`] with [`Mode::Task`], and what is
    /// stored with the release of its lease says how the task ends: [`TaskEnd`](crate::base::task::TaskEnd).
    fn tasks(&self, _key: &Key, _call: TaskCall<'_>, _deadline: &Deadline) -> Result<TaskAnswer> {
        Err(no_delay_queues(self.endpoint()))
    }

    /// For errors: where the value is stored.
    fn value_key(&self, key: &Key) -> String {
        key.name().to_owned()
    }

    /// What it is like here, and which promise doesn't hold. It leaves nothing behind, and shows no secret.
    fn diagnose(&self, _of: (&Namespace, &Options), _deadline: &Deadline) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// Reports leases that somebody else has ended to `to`, as far as the engine hears of them by itself.
    fn tell_revocations(&self, _to: Weak<dyn Revocations>) {}

    /// Copies of the open files by which the kernel knows that this owner has the lock: whoever has one of them open
    /// keeps it taken. Empty where no file is locked.
    fn lock_files(&self, _owner: &Owner) -> io::Result<Vec<File>> {
        Ok(Vec::new())
    }

    /// The engine of a child that was forked off, with connections and files of its own. `None` when this one serves
    /// both.
    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        None
    }

    /// Called when a lease is lost, or will never be released, for an engine that keeps something of it in this
    /// process. It doesn't block.
    fn abandon(&self, _owner: &Owner) {}
}

/// How one owner comes to a lock: it asks, and waits in between, in the way of its engine.
///
/// It belongs to the thread that has the turn for the name, and moves with the turn to the next thread. The owner
/// leaves the engine's queue by [`Change::Release`].
pub(crate) trait Wait: Send {
    /// Asks for the lock once. The owner that has it already gets it anew, with its token. If it is taken, the owner is
    /// in the engine's queue from then on; without a pace it doesn't wait, and is in no queue.
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed>;

    /// Blocks after a question, until the lock is granted or it is time to ask again.
    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let pause = pace.next_pause().min(request.ttl / 3);
        pace.until.sleep(pause);
        None
    }

    /// Of several shards, the one of the last grant.
    fn shard(&self) -> Option<&Key> {
        None
    }
}

/// Hears of changes of one value. Dropped, it ends.
pub(crate) trait Watch: Send {
    /// Blocks until the value was changed, or until then at most, and says whether it was. Without a change it may
    /// return early, and a change may have been missed until the first call has returned, or one that fails: so the
    /// caller looks at the value whenever the answer is `false`.
    fn changed(&mut self, until: &Deadline) -> Result<bool>;
}

/// What an engine can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities {
    /// Whether a lease is at several servers: when one has lost it, the others may still have it.
    pub(crate) is_split: bool,
    /// Whether there are only locks that one holds at once, without a value.
    pub(crate) only_exclusive: bool,
    /// How many names can be had all or none.
    pub(crate) most_names: usize,
    /// Whether readers or writers can be preferred.
    pub(crate) preference: bool,
    /// Into how many shards a delay queue is split unless its caller says so; 0: there are none. An engine that says 1
    /// has queues that aren't split.
    pub(crate) shards: u16,
    /// Whether a lease ends with its ttl by itself. Otherwise it ends with its process.
    pub(crate) leases_expire: bool,
    /// Whether all that an owner has is dropped when it has been silent for its ttl. Otherwise it may stay for as long
    /// as its process lives.
    pub(crate) silence_ends_all: bool,
    /// By how much less than its ttl a lease is valid, because servers whose clocks differ may take each other's place.
    pub(crate) clock_skew: Duration,
    /// How often a lease may pass from thread to thread: each uses a token above the one that was granted.
    pub(crate) hand_overs: u64,
}

impl Default for Capabilities {
    /// All that there is, with leases that expire.
    fn default() -> Self {
        Capabilities {
            is_split: false,
            only_exclusive: false,
            most_names: usize::MAX,
            preference: true,
            shards: 0,
            leases_expire: true,
            silence_ends_all: true,
            clock_skew: Duration::ZERO,
            hand_overs: HAND_OVERS,
        }
    }
}

impl Capabilities {
    /// Refuses what the engine at `endpoint` can't do.
    pub(crate) fn check(self, mode: Mode, prefer: Prefer, endpoint: &str) -> Result<()> {
        if self.only_exclusive {
            match mode {
                Mode::Exclusive | Mode::Task => {}
                Mode::Shared => return Err(only_exclusive(endpoint, "read locks")),
                Mode::Permits { .. } => return Err(only_exclusive(endpoint, "semaphores")),
            }
        }
        if mode == Mode::Shared && prefer != Prefer::Fair && !self.preference {
            return Err(unsupported(endpoint, "preferring readers or writers"));
        }
        if mode == Mode::Task && self.shards == 0 {
            return Err(no_delay_queues(endpoint));
        }
        Ok(())
    }

    /// Refuses values if the engine at `endpoint` has none.
    pub(crate) fn check_values(self, endpoint: &str) -> Result<()> {
        match self.only_exclusive {
            true => Err(only_exclusive(endpoint, "values")),
            false => Ok(()),
        }
    }

    /// Refuses so many names, all or none, if the engine at `endpoint` can't.
    pub(crate) fn check_names(self, count: usize, endpoint: &str) -> Result<()> {
        if count > self.most_names {
            let what = format!("locking more than {} names at once", self.most_names);
            return Err(unsupported(endpoint, &what));
        }
        Ok(())
    }
}

/// The error for what the engine at `endpoint` can't do.
pub(crate) fn unsupported(endpoint: &str, what: &str) -> Error {
    Error::Unsupported {
        what: format!("{what} on {endpoint}: use redis://, file: or memory:"),
    }
}

/// The same where a majority decides.
fn only_exclusive(endpoint: &str, what: &str) -> Error {
    Error::Unsupported {
        what: format!(
            "{what} on {endpoint}: a quorum supports exclusive locks only: use redis://, file: or memory:"
        ),
    }
}

fn no_delay_queues(endpoint: &str) -> Error {
    Error::Unsupported {
        what: format!("delay queues on {endpoint}: use redis://, file: or memory:"),
    }
}

/// The error for a user that may not do this.
fn denied(
    name: Option<&str>,
    endpoint: &str,
    advice: &'static str,
    cause: impl Into<Cause>,
) -> Error {
    Error::Denied {
        name: name.map(String::from),
        engine: endpoint.to_owned(),
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

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Failed<E = Error> {
    pub(crate) error: E,
    /// Whether what was asked may have been done all the same.
    pub(crate) sent: bool,
}

impl<E> Failed<E> {
    pub(crate) fn unsent(error: E) -> Self {
        Failed { error, sent: false }
    }

    pub(crate) fn sent(error: E) -> Self {
        Failed { error, sent: true }
    }
}

/// A part of a list of names.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) names: Vec<String>,
    /// Where the next page begins; `None` after the last.
    pub(crate) next: Option<Cursor>,
}

/// Where a page of a list begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Which of the engine's servers has it.
    pub(crate) part: usize,
    /// Where it begins there: 0 is the beginning, and any other number that server's own.
    pub(crate) at: u64,
    /// The name behind which it begins, where the engine lists names in order.
    pub(crate) after: Option<String>,
}

impl Cursor {
    /// The cursor after a page, behind which the server goes on at `at`; 0 is its end.
    pub(crate) fn next(&self, at: u64, parts: usize) -> Option<Self> {
        let part = self.part + usize::from(at == 0);
        (part < parts).then_some(Cursor {
            part,
            at,
            after: None,
        })
    }
}

/// Hears of leases that somebody else has ended. It is called without any lock held.
pub(crate) trait Revocations: Send + Sync {
    /// `owner` is the whole text of an owner, whoever that is. Its lease has a token below `below`; a later one, if it
    /// ever gets any, has a larger token. An engine that tells at once needs no such limit: `u64::MAX`.
    fn revoked(&self, owner: &str, below: u64, reason: LostReason);

    /// The same for an engine whose thread must not block: the guard is lost at once. What is returned calls the user's
    /// code, which may block.
    fn revoked_untold(&self, owner: &str, below: u64, reason: LostReason) -> Option<Telling> {
        self.revoked(owner, below, reason);
        None
    }
}

/// Calls the user's code, to tell it what has happened.
pub(crate) type Telling = Box<dyn FnOnce() + Send>;

/// Who hears of leases that somebody else has ended: the lockers of an engine, each while it lives.
#[derive(Default)]
struct Receivers(Mutex<Vec<Weak<dyn Revocations>>>);

impl Receivers {
    fn add(&self, receiver: Weak<dyn Revocations>) {
        let mut all = self.0.lock();
        all.retain(|one| one.strong_count() > 0);
        all.push(receiver);
    }

    /// Tells all of them of each owner: none knows which are its own before it looks.
    fn tell<'a>(&self, owners: impl IntoIterator<Item = &'a Owner>, reason: LostReason) {
        // Called without the lock: a receiver may be the last that has its locker, whose end is told here.
        let all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        for owner in owners {
            all.iter()
                .for_each(|one| one.revoked(owner.as_str(), u64::MAX, reason));
        }
    }
}

impl fmt::Debug for Receivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().len();
        f.debug_struct("Receivers")
            .field("count", &count)
            .finish_non_exhaustive()
    }
}
