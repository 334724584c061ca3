//! The counter that the fencing tokens of all names come from.

use crate::base::token::{Token, host_micros};

/// One for all names: a name that nobody holds needs no state.
#[derive(Debug, Default)]
pub(super) struct Counter(u64);

impl Counter {
    /// A token that is granted later is above it.
    pub(super) fn last_used(&self) -> u64 {
        self.0
    }

    pub(super) fn next(&mut self, abandoned: bool) -> Token {
        // The counter may be odd here: it belongs to all names, and only a name's state tells of abandonment.
        let stored = if abandoned {
            self.0 | 1
        } else {
            (self.0 + 1) & !1
        };
        let token = Token::next(stored, host_micros());
        self.0 = token.number;
        token
    }

    /// The next is above this.
    pub(super) fn used(&mut self, number: u64) {
        self.0 = self.0.max(number);
    }
}
