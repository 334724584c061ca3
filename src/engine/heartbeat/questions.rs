//! What an owner asks an engine that drops waiters who don't ask again, and what it is answered: plain data.

use std::time::Duration;

use crate::base::token::Token;
use crate::base::value::Stored;

/// What such an engine does when the lock is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IfTaken<'a> {
    /// The owner doesn't wait, and leaves the queue if it is in it.
    Leave,
    /// The owner enters the queue, or keeps its place.
    Wait {
        /// It asks again within this time, or is dropped from the queue.
        heartbeat_within: Duration,
        /// Where it hears that the lock was granted; `None` when it can't hear now.
        inbox: Option<Listening<'a>>,
    },
}

/// Where a waiter listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening<'a> {
    pub(crate) channel: &'a str,
    /// The server to which it is connected for that, empty if it isn't known; `None` where it is always the same.
    pub(crate) server: Option<&'a str>,
}

/// What such an engine answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted {
        token: Token,
        /// What the lock protects, if that was asked for.
        value: Option<Stored>,
    },
    Taken(Taken),
    /// The owner's lease was broken.
    Broken,
}

/// How the lock stood when it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// For so much longer if it isn't renewed; `None` when nobody can tell.
    pub(crate) remaining: Option<Duration>,
    /// Tokens that are granted after this answer are above this number.
    pub(crate) counter: u64,
    /// Whether the owner was in the queue before.
    pub(crate) was_queued: bool,
    /// Whether its holder will hand it on: it is no program that knows nothing of the queue.
    pub(crate) is_handed_on: bool,
    /// How long the queue is that the owner is in; 0 when it is in none.
    pub(crate) queue_length: u64,
    /// One of its holders: `<host>/<pid>/<thread>`. For the log.
    pub(crate) holder: Option<String>,
}
