//! A lease, while it is held and after that.

use super::server::Ending;
use super::{HALF_TTL, HAND_OVER, Mutant, Owner, RENEW_AFTER, Setup, TTL, Ticks, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub owner: Owner,
    pub token: Token,
    /// For how long it is valid.
    pub left: Ticks,
    /// How long ago this process was given it.
    pub age: Ticks,
    pub hand_overs: Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    pub lease: Lease,
    pub seat: bool,
    pub lost: Option<Loss>,
    /// When the lease is to be renewed.
    pub due: Ticks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    Expired,
    NotOwner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deferred {
    pub owner: Owner,
    pub ending: Ending,
}

impl Lease {
    pub fn new(owner: Owner, token: Token, asked: Ticks) -> Self {
        Lease {
            owner,
            token,
            left: TTL - asked,
            age: 0,
            hand_overs: 0,
        }
    }

    /// Whether the next thread may have it without asking the server.
    pub fn may_be_handed_over(&self, panicked: bool, setup: &Setup) -> bool {
        let in_time = self.age < HAND_OVER || setup.is(Mutant::HandOverUnlimited);
        let lasts = self.left >= HALF_TTL || setup.is(Mutant::HandedOverTooLate);
        let is_one_more = self.hand_overs < setup.hand_overs;
        in_time
            && lasts
            && (is_one_more || setup.is(Mutant::HandOversNotCounted))
            && (!panicked || setup.is(Mutant::PanicHandsOver))
    }

    /// The same lease, for the next thread.
    pub fn handed_over(mut self, setup: &Setup) -> Self {
        if !setup.is(Mutant::TokenNotRaised) {
            self.token += 2;
        }
        if setup.is(Mutant::HandedOverValidAnew) {
            self.left = TTL;
        }
        if setup.is(Mutant::HandOverTimeRestarts) {
            self.age = 0;
        }
        self.hand_overs += 1;
        self
    }

    pub fn ending(&self, panicked: bool) -> Ending {
        let last_used = self.token;
        if panicked {
            Ending::Panicked { last_used }
        } else {
            Ending::Clean { last_used }
        }
    }

    pub fn tick(&mut self) {
        self.left = (self.left - 1).max(0);
        self.age = (self.age + 1).min(HAND_OVER);
    }
}

impl Guard {
    pub fn new(lease: Lease, seat: bool) -> Self {
        let since = TTL - lease.left;
        Guard {
            lease,
            seat,
            lost: None,
            due: (RENEW_AFTER - since).max(0),
        }
    }

    /// Whether it says that it is held.
    pub fn is_held(&self) -> bool {
        self.lost.is_none() && self.lease.left > 0
    }

    pub fn tick(&mut self) {
        self.lease.tick();
        self.due = (self.due - 1).max(0);
    }
}
