//! What each change of a name goes by, and whom it leaves to be told.

use super::entry::{Entry, PresenceId};
use crate::base::clock::BootInstant;
use crate::base::token::{Token, host_micros};

/// What each change of a name goes by.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) now: BootInstant,
    /// By what the owner that asks is known to live.
    pub(super) presence: Option<PresenceId>,
    /// The counter that fencing tokens come from: a token that is granted later is above it. One for all names: a name that
    /// nobody holds needs no state.
    pub(super) last_used: u64,
    /// To whom a name was granted, until they are told.
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
