//! What the rules use of the seam, and the rules themselves.

pub(crate) mod heartbeat;
#[path = "../../../../src/engine/rules/mod.rs"]
pub(crate) mod rules;
pub(crate) mod subject;

use std::time::Duration;

use crate::base::claim::Claim;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::token::Ending;

/// An owner's claim.
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

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    Done,
    DoneSince(crate::base::clock::BootInstant),
    NotOwner,
    Broken,
}

impl Renewed {
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
    pub(crate) ending: Ending,
    pub(crate) keep: Duration,
    pub(crate) value: Option<&'a [u8]>,
}

impl Release<'_> {
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
    Broken,
}
