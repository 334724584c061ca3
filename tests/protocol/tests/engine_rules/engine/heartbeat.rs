//! How an owner asks, and what it is answered.

use std::marker::PhantomData;
use std::time::Duration;

use crate::base::token::Token;

/// What becomes of an owner when the lock is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IfTaken<'a> {
    Leave,
    Wait {
        heartbeat_within: Duration,
        /// A waiter is told by its engine.
        inbox: PhantomData<&'a ()>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted { token: Token, value: Option<()> },
    Taken(Taken),
    Broken,
}

/// How the lock stood when it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) remaining: Option<Duration>,
    pub(crate) counter: u64,
    pub(crate) was_queued: bool,
    pub(crate) is_handed_on: bool,
    pub(crate) queue_length: u64,
    pub(crate) holder: Option<String>,
}
