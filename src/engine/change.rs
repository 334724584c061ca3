//! What is asked for and of a lease, and what became of it: a question with its answers, one verb for all changes, and
//! its two outcomes.

use std::time::Duration;

use crate::base::{BootInstant, Claim, Ending, Key, LostReason, Owner, Stored, TaskRecord, Token};

/// The lease that a change is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) owner: &'a Owner,
    pub(crate) ttl: Duration,
    /// The token that the engine granted for this lease, if the caller knows it. An owner may lose a lease and be
    /// granted the name anew by a late copy of its first request: that lease has a larger token.
    pub(crate) granted: Option<u64>,
}

impl<'a> Request<'a> {
    pub(crate) fn key(&self) -> &'a Key {
        &self.claim.key
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
    /// The owner had the lock by a grant that it never saw, and somebody broke it. This owner gets nothing any more,
    /// has nothing, and is in no queue: another one has to ask.
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

impl Grant {
    /// That of a task. The time since 1970 is `wall` ahead of what the record says.
    pub(crate) fn of_task(
        token: Token,
        mut record: TaskRecord,
        wall: i64,
        since: BootInstant,
    ) -> Self {
        record.due = record.due.saturating_add_signed(wall);
        record.now = record.now.saturating_add_signed(wall);
        Grant {
            token,
            value: Some(Some(record.to_bytes().into())),
            since,
        }
    }
}

/// What is done with a lease, if it is still the owner's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// It lasts for another ttl.
    Renew,
    /// Nothing: the answer tells whether it is still the owner's. An engine that can't look without renewing renews it.
    Verify,
    /// It ends.
    Release(Release<'a>),
    /// The value is stored.
    Store(&'a [u8]),
    /// An exclusive lease becomes one that reads, with a token above `last_used`. The value is stored, if there is one.
    Downgrade {
        last_used: u64,
        value: Option<&'a [u8]>,
    },
    /// The lease that `from` has becomes that of the request's owner, for a ttl, with a token above `last_used`. If it
    /// is that owner's already, it is done again.
    Adopt { from: &'a Owner, last_used: u64 },
    /// It lasts for a ttl from now even where leases end with their processes: another process is to adopt it, and the
    /// owner's does nothing for it any more.
    GiveAway,
}

/// How a lease is released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release<'a> {
    /// An owner that doesn't know what it has leaves the engine's queue, too.
    pub(crate) ending: Ending,
    /// For how long after it the lock stays taken, without a holder.
    pub(crate) keep: Duration,
    /// What is stored with it; `None`: what is there stays.
    pub(crate) value: Option<&'a [u8]>,
    /// Of a task: who takes the next one of the queue by the same command, if one is ready. It asks for the first time.
    /// An engine may leave it out.
    pub(crate) next: Option<&'a Owner>,
}

impl Release<'_> {
    /// By an owner that doesn't know what it has.
    pub(crate) const UNKNOWN: Self = Release {
        ending: Ending::Unknown,
        keep: Duration::ZERO,
        value: None,
        next: None,
    };

    /// Of a lease that nobody goes on holding: the next holder is told that it was abandoned.
    pub(crate) fn abandoned(last_used: u64) -> Self {
        Release {
            ending: Ending::Panicked { last_used },
            ..Release::UNKNOWN
        }
    }
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(Done),
    Gone(Gone),
}

/// It was done: the lease was the owner's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// That of a lease that was downgraded or adopted, or of the next task.
    pub(crate) token: Option<Token>,
    /// The engine's lease began no earlier. `None`: no earlier than when this was asked.
    pub(crate) since: Option<BootInstant>,
    /// What the lock protects: after an adoption, if that was asked for. Or the next task.
    pub(crate) value: Option<Stored>,
    /// It was asked a second time, the answer to the first having been lost. While the lease lasts, a copy of the first
    /// may still come, and undo what the same owner stores later.
    pub(crate) is_repeated: bool,
    /// The lock is released where it counts, but a server that didn't answer may go on showing it as taken.
    pub(crate) is_partial: bool,
}

/// The lease isn't the owner's any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It has run out, or somebody deleted it.
    NotOwner,
    /// Somebody broke the lock.
    Broken,
    /// A release was asked a second time, the answer to the first having been lost. The first released it, or the lease
    /// had run out.
    Repeated,
    /// The same at a server that may have lost its data before, and let others in.
    Unclear,
}

impl Gone {
    /// For a guard that is told.
    pub(crate) fn reason(self) -> LostReason {
        match self {
            Gone::Broken => LostReason::Broken,
            Gone::NotOwner | Gone::Repeated | Gone::Unclear => LostReason::NotOwner,
        }
    }
}

impl Outcome {
    pub(crate) const DONE: Self = Outcome::Done(Done {
        token: None,
        since: None,
        value: None,
        is_repeated: false,
        is_partial: false,
    });
    pub(crate) const DONE_AGAIN: Self = Outcome::Done(Done {
        token: None,
        since: None,
        value: None,
        is_repeated: true,
        is_partial: false,
    });
    pub(crate) const NOT_OWNER: Self = Outcome::Gone(Gone::NotOwner);
    pub(crate) const BROKEN: Self = Outcome::Gone(Gone::Broken);

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Outcome::Done(_))
    }

    /// Done, or not the owner.
    pub(crate) fn of(is_owner: bool) -> Self {
        if is_owner {
            Outcome::DONE
        } else {
            Outcome::NOT_OWNER
        }
    }

    /// Done, and the engine's lease began no earlier than then.
    pub(crate) fn since(since: BootInstant) -> Self {
        Outcome::Done(Done {
            since: Some(since),
            ..Done::default()
        })
    }
}

impl From<Option<Grant>> for Outcome {
    /// Done with that lease; without one the lease wasn't the owner's.
    fn from(grant: Option<Grant>) -> Self {
        grant.map_or(Outcome::NOT_OWNER, |grant| {
            Outcome::Done(Done {
                token: Some(grant.token),
                since: Some(grant.since),
                value: grant.value,
                ..Done::default()
            })
        })
    }
}

impl From<Option<Token>> for Outcome {
    /// Done with a lease of that token; without one the lease wasn't the owner's.
    fn from(token: Option<Token>) -> Self {
        token.map(|token| (token, None)).into()
    }
}

impl From<Option<(Token, Option<Stored>)>> for Outcome {
    /// The same, with the value if that was asked for.
    fn from(adopted: Option<(Token, Option<Stored>)>) -> Self {
        adopted.map_or(Outcome::NOT_OWNER, |(token, value)| {
            Outcome::Done(Done {
                token: Some(token),
                value,
                ..Done::default()
            })
        })
    }
}
