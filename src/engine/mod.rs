//! Where locks live, behind one trait.

use std::fmt;
use std::time::Duration;

use crate::base::claim::{Claim, Mode};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;

#[cfg(feature = "file")]
mod file;
mod memory;
#[cfg(feature = "redis")]
mod net;
pub(crate) mod open;
#[cfg(feature = "redis")]
mod redis;
mod url;

/// What an engine is asked about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) owner: &'a Owner,
    pub(crate) ttl: Duration,
}

impl<'a> Request<'a> {
    pub(crate) fn key(&self) -> &'a Key {
        &self.claim.key
    }
}

/// What an acquire does when the lock is taken.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(all(feature = "file", feature = "redis")), expect(dead_code))]
pub(crate) enum IfTaken<'a> {
    /// It doesn't wait, and leaves the engine's line if it is in it.
    Leave,
    /// It enters the engine's line, or keeps its place.
    Wait {
        /// It asks again within this time, or is dropped from the line.
        promise: Duration,
        /// Where it hears that the lock was granted; `None` when it can't hear now.
        inbox: Option<&'a str>,
        /// Whether nothing but the lock ends the wait, so that an engine without a ttl may block.
        endless: bool,
    },
}

/// The answer to an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted {
        token: Token,
        /// What the lock protects, if that was asked for.
        value: Option<Stored>,
    },
    /// Another holds it.
    Taken {
        /// For so much longer if it isn't renewed; `None` when nobody can tell.
        remaining: Option<Duration>,
        /// Tokens that are granted after this answer are above this number.
        counter: u64,
        /// Whether the owner was in the engine's line before.
        stood: bool,
        /// Whether it will be handed on: its holder is no program that knows nothing of the engine's line.
        known: bool,
        /// How long the engine's line is that it stands in; 0 when it stands in none.
        length: u64,
        /// Who has it, or one of those that do: `<host>/<pid>/<thread>`, if the engine can say so. For the log.
        holder: Option<String>,
    },
}

/// What a waiter hears from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "redis"), expect(dead_code))]
pub(crate) enum News {
    /// The lock was granted to it, at some time.
    Granted(Token),
    /// Something may have been missed.
    Ask,
}

/// Where one waiter hears of grants, for as long as this lives.
pub(crate) trait Grants: Send {
    /// The name of the inbox, while it hears.
    fn inbox(&self) -> Option<&str>;

    /// Blocks until there are news, at most for `timeout`.
    fn wait(&self, timeout: Duration) -> Option<News>;

    /// Called when the waiter was passed over although it should have been heard.
    fn distrust(&self);
}

/// Why an acquire has no answer.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// Whether it may have taken the lock all the same.
    pub(crate) sent: bool,
}

/// An acquire that failed before it could take anything.
impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed { error, sent: false }
    }
}

/// How a lease is released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release<'a> {
    /// Of one whose ending is unknown the owner leaves the engine's line, if it is in it.
    pub(crate) ending: Ending,
    /// For how long after it the lock stays taken, without a holder.
    pub(crate) keep: Duration,
    /// What is stored with it; `None`: what is there stays.
    pub(crate) value: Option<&'a [u8]>,
}

impl Release<'_> {
    /// By an owner that doesn't know what it has.
    pub(crate) const UNKNOWN: Self = Release {
        ending: Ending::Unknown,
        keep: Duration::ZERO,
        value: None,
    };
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    Done,
    NotOwner,
    /// Not the owner when asked a second time, the answer to the first having been lost.
    #[cfg(feature = "redis")]
    Unclear,
}

/// The answer to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// When asked a second time: while the lease lasts, a copy of the command may still come, and undo what the same
    /// owner stores later.
    #[cfg(feature = "redis")]
    AfterAll,
    No,
}

/// Where locks live.
///
/// Every call returns by its deadline; only an acquire that may block, and has none, takes as long as it takes. To
/// repeat any of them is harmless.
pub(crate) trait Engine: fmt::Debug + Send + Sync {
    /// Takes the lock, or says that it is taken. The owner that has it already gets it anew, with its token.
    fn acquire(
        &self,
        request: Request<'_>,
        if_taken: IfTaken<'_>,
        deadline: &Deadline,
    ) -> Result<Acquired, Failed>;

    /// Makes the lease last for another ttl, and says whether it was still the owner's.
    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool>;

    /// Ends the lease, if it is still the owner's.
    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Released>;

    /// Stores the value, if the lease is still the owner's.
    fn store(&self, request: Request<'_>, value: &[u8], deadline: &Deadline) -> Result<Kept>;

    /// The value, whoever holds the lock.
    #[cfg_attr(not(any(feature = "value", feature = "file", test)), expect(dead_code))]
    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored>;

    /// Deletes the value, whoever holds the lock.
    #[cfg_attr(not(any(feature = "value", test)), expect(dead_code))]
    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()>;

    /// Asks whether the lock is the owner's.
    fn is_owner(&self, request: Request<'_>, deadline: &Deadline) -> Result<bool>;

    /// For errors: where the value is stored.
    #[cfg_attr(not(feature = "value"), expect(dead_code))]
    fn value_key(&self, key: &Key) -> String;

    /// Turns an exclusive lease into one that reads, if it is still the owner's, and stores the value, if there is one.
    fn downgrade(
        &self,
        request: Request<'_>,
        _last_used: u64,
        _value: Option<&[u8]>,
        _deadline: &Deadline,
    ) -> Result<Option<Token>> {
        Err(self.unsupported(request.claim.mode))
    }

    /// How many permits are free, of so many.
    fn free_permits(&self, _key: &Key, of: u32, _deadline: &Deadline) -> Result<u32> {
        Err(self.unsupported(Mode::Permits { count: 1, of }))
    }

    /// Whether a name can be held like this.
    fn supports(&self, mode: Mode) -> bool {
        mode == Mode::Exclusive
    }

    /// The error for a mode that it doesn't support.
    fn unsupported(&self, mode: Mode) -> Error {
        let what = match mode {
            Mode::Exclusive => "locks",
            Mode::Shared => "read-write locks",
            Mode::Permits { .. } => "semaphores",
        };
        let place = self.place();
        let what = format!("{what} on {place}: use redis:// or memory:");
        Error::Unsupported { what }
    }

    /// Whether those that wait stand in a line of the engine's, and hear of grants.
    fn has_line(&self) -> bool {
        false
    }

    /// Where `owner` hears of grants, in an engine that hands locks on to those in its line. `None` when it can't
    /// hear now; with `start` that is tried for a moment.
    fn listen(
        &self,
        _key: &Key,
        _owner: &Owner,
        _start: Option<&Deadline>,
    ) -> Option<Box<dyn Grants>> {
        None
    }

    /// Blocks until it may be the owner's turn, at most for `timeout`: for those that hear of no grants.
    fn wait(&self, _request: Request<'_>, timeout: Duration) {
        std::thread::sleep(timeout);
    }

    /// Whether a lease ends with its ttl by itself. Otherwise it ends with its process.
    fn has_ttl(&self) -> bool {
        true
    }

    /// Called when a lease is lost, for an engine that keeps something of it in this process.
    fn forget(&self, _owner: &Owner) {}

    /// For errors: where locks live, without user and password.
    fn place(&self) -> &str;
}
