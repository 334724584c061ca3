//! What an engine is asked of a lease, and what it answers: plain data, of which the rules need no more.

use std::time::Duration;

use crate::base::claim::Claim;
use crate::base::clock::BootInstant;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Ending;

/// What an engine is asked about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) owner: &'a Owner,
    pub(crate) ttl: Duration,
    /// The token that the engine granted for the lease which this is about, if the caller knows it. An owner may lose a lease
    /// and be granted the name anew by a late copy of its first request: that lease has a larger token.
    pub(crate) granted: Option<u64>,
}

impl<'a> Request<'a> {
    pub(crate) fn key(&self) -> &'a Key {
        &self.claim.key
    }
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    /// The engine's lease began anew no earlier than when it was asked.
    Done,
    /// The engine's lease began anew no earlier than then, which is before it was asked.
    DoneSince(BootInstant),
    NotOwner,
    /// Not the owner, because somebody broke the lock.
    Broken,
}

impl Renewed {
    /// Done, or not the owner.
    pub(crate) fn of(is_owner: bool) -> Self {
        if is_owner {
            Renewed::Done
        } else {
            Renewed::NotOwner
        }
    }
}

/// How a lease is released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release<'a> {
    /// Of a lease whose ending is unknown the owner leaves the engine's queue, if it is in it.
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
    /// Not the owner, because somebody broke the lock.
    Broken,
    /// Not the owner when asked a second time, the answer to the first having been lost. The first released it, or the lease had
    /// run out.
    Repeated,
    /// The same at a server that may have lost its data before, and let others in.
    Unclear,
}
