//! Ownership of a name for a limited time: the lease, what watches over it while it is held, the thread that renews it, and
//! the releases that are still to be made.
//!
//! It uses `base` and the traits of `engine`. What always holds here: a lease has one owner, from which it moves to the
//! next; a lease that was lost is never valid again.

pub(crate) mod deferred_release;
pub(crate) mod monitor;
pub(crate) mod plan;
pub(crate) mod renewer;

use std::time::Duration;

use crate::base::claim::Claim;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::token::{Ending, Token};
use crate::base::value::Stored;

/// Ownership of a name for a limited time: plain data with one owner.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) claim: Claim,
    pub(crate) owner: Owner,
    pub(crate) token: Token,
    pub(crate) valid_until: BootInstant,
    /// When it is to be renewed.
    pub(crate) due: BootInstant,
    /// When this process was given it.
    pub(crate) granted: BootInstant,
    /// When its holder got it: later, if it was handed over.
    pub(crate) held_since: BootInstant,
    /// How often it was handed over since it was granted.
    pub(crate) hand_overs: u64,
    /// If it is released before this, the lock stays taken until then.
    pub(crate) kept_until: BootInstant,
    /// Whether its holder was dropped by a panic that began while it was held.
    pub(crate) panicked: bool,
    /// What the lock protects, while it is known here.
    pub(crate) value: Option<Stored>,
}

impl Lease {
    /// One that isn't valid yet: see `Core::restart`.
    pub(crate) fn new(claim: Claim, owner: Owner, token: Token) -> Self {
        Lease {
            claim,
            owner,
            token,
            valid_until: BootInstant::START,
            due: BootInstant::MAX,
            granted: BootInstant::START,
            held_since: BootInstant::START,
            hand_overs: 0,
            kept_until: BootInstant::START,
            panicked: false,
            value: None,
        }
    }

    pub(crate) fn remaining(&self, now: BootInstant) -> Duration {
        if self.valid_until == BootInstant::MAX {
            return Duration::MAX;
        }
        self.valid_until.since(now)
    }

    pub(crate) fn is_valid(&self, now: BootInstant) -> bool {
        now < self.valid_until
    }

    /// Whether the next thread of this process may have it without asking the engine: for at most `hand_over`
    /// since it was granted, and with half of its ttl left at least; `most` hand-overs of one lease are allowed.
    pub(crate) fn may_be_handed_over(
        &self,
        now: BootInstant,
        ttl: Duration,
        hand_over: Duration,
        most: u64,
    ) -> bool {
        now.since(self.granted) < hand_over
            && self.remaining(now) >= ttl / 2
            && self.hand_overs < most
            // The engine tells the next holder of it, or keeps the lock.
            && !self.panicked
            && self.kept_until <= now
    }

    /// Until when the lock stays taken if it is released now. A panic frees it at once.
    pub(crate) fn kept_until(&self) -> BootInstant {
        if self.panicked {
            BootInstant::START
        } else {
            self.kept_until
        }
    }

    /// How it ends when it is released. What those that share were doing is nobody's concern.
    pub(crate) fn ending(&self) -> Ending {
        let last_used = self.token.number;
        if self.panicked && self.claim.is_exclusive() {
            Ending::Panicked { last_used }
        } else {
            Ending::Clean { last_used }
        }
    }

    /// The same lease, for the next holder in this process, who gets it now, and what that one asked for.
    pub(crate) fn handed_over(self, claim: &Claim, now: BootInstant) -> Self {
        Lease {
            claim: claim.clone(),
            held_since: now,
            token: self.token.handed_over(),
            hand_overs: self.hand_overs + 1,
            ..self
        }
    }
}
