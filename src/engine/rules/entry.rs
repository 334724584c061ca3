//! One line of a name's list, and what each change of a list goes by.

use crate::base::{BootInstant, Mode, Owner, Token, token::host_micros};
use crate::engine::Request;

/// By what an engine sees whether the process of an owner lives. A memory has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PresenceId(pub(crate) u128);

/// One that holds a name, or waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// `None` of a name that is kept taken for nobody.
    pub(crate) owner: Option<Owner>,
    /// `None` of one that lasts until a time, whoever lives.
    pub(crate) presence: Option<PresenceId>,
    pub(crate) state: EntryState,
    pub(crate) mode: Mode,
    /// Since when it holds or waits.
    pub(crate) since: BootInstant,
    /// Until when, if it does nothing.
    pub(crate) until: BootInstant,
}

/// What it has of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// A lease.
    Has(Token),
    /// A lease, and it may not know it yet.
    Given(Token),
    /// The name was granted to it, and it hasn't asked since.
    Granted,
    /// Nobody has it, and nobody gets it: its last holder released it with `at_least_for`.
    Kept,
    Waits {
        /// Before readers.
        first: bool,
        /// It wants other names, too.
        more: bool,
    },
    /// Its lease was broken, and it is told so when it asks: a late copy of its question must not take the lock again.
    Broken,
}

impl Entry {
    /// One that stays until something is done about it.
    pub(super) fn new(request: Request<'_>, state: EntryState, step: &Step) -> Self {
        Entry {
            owner: Some(request.owner.clone()),
            presence: step.presence,
            state,
            mode: request.claim.mode,
            since: step.now,
            until: BootInstant::MAX,
        }
    }

    /// Whether others are kept out by it.
    pub(super) fn holds(&self) -> bool {
        !self.waits() && !self.is_broken()
    }

    pub(super) fn waits(&self) -> bool {
        matches!(self.state, EntryState::Waits { .. })
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.state == EntryState::Broken
    }

    pub(crate) fn token(&self) -> Option<Token> {
        match self.state {
            EntryState::Has(token) | EntryState::Given(token) => Some(token),
            _ => None,
        }
    }

    pub(crate) fn is_of(&self, owner: &Owner) -> bool {
        self.owner.as_ref() == Some(owner)
    }

    /// Whether its end abandons the name.
    pub(super) fn abandons(&self) -> bool {
        match self.state {
            _ if self.mode != Mode::Exclusive => false,
            EntryState::Has(_) => true,
            // It never knew that it had the lease, nor that the one before it had abandoned it.
            EntryState::Given(token) => token.abandoned,
            _ => false,
        }
    }

    pub(super) fn goes_first(&self) -> bool {
        matches!(self.state, EntryState::Waits { first: true, .. })
    }
}

/// What each change of a name goes by.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) now: BootInstant,
    /// By what the owner that asks is known to live.
    pub(super) presence: Option<PresenceId>,
    /// The counter that fencing tokens come from: a token that is granted later is above it. One for all names: a name
    /// that nobody holds needs no state.
    pub(super) last_used: u64,
    /// To whom a name was granted, as they waited, until they are told.
    pub(super) granted: Vec<Entry>,
}

impl Step {
    pub(super) fn next_token(&mut self, abandoned: bool) -> Token {
        // The counter may be odd here: it belongs to all names, and only a name's state tells of abandonment.
        let stored = if abandoned {
            self.last_used | 1
        } else {
            (self.last_used + 1) & !1
        };
        let token = Token::next(stored, host_micros());
        self.last_used = token.number;
        token
    }

    /// The next token is above this.
    pub(super) fn used(&mut self, number: u64) {
        self.last_used = self.last_used.max(number);
    }
}

impl Default for Step {
    fn default() -> Self {
        Step {
            now: BootInstant::START,
            presence: None,
            last_used: 0,
            granted: Vec::new(),
        }
    }
}
