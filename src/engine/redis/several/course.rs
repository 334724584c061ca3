//! What an owner does next that wants names on several slots: the decisions alone, without time and without I/O.
//!
//! The names of one slot are a part. Parts have numbers, in the order of their slots, which is the same for all processes. The
//! owner takes them one after the other, and is always in one of these states:
//!
//! | state | it has | what it sends, and what ends the state |
//! |---|---|---|
//! | [`Asks`](Doing::Asks) | the parts in front of one, and perhaps a place in the queue of that | it asks for that one as for a single name, until it is granted: then for the next. A question with leases of parts renews them first |
//! | all parts granted | all parts, by several tokens | it raises their counters to the largest token, and has them all |
//! | [`Leaves`](Doing::Leaves) | no one knows | it releases each part that it asked for, until each release is answered. Another owner begins anew |
//!
//! An owner leaves if one of its leases is lost, broken, or not known to be renewed, and if it doesn't wait for a part that is
//! taken. Having left, it asks for nothing any more: so a release that is carried out late takes nothing from it.
//!
//! What always holds: an owner that is in the queue of a part has nothing behind that part. So each waits for owners that have
//! that part, and wait, if they do, at parts behind it: nobody waits for itself.

use crate::base::token::Token;

#[cfg(test)]
mod tests;

/// What an owner has of several parts, and what it does next.
#[derive(Debug)]
pub(super) struct Course {
    parts: usize,
    /// The tokens of the parts that it has, from the first on.
    tokens: Vec<Token>,
    doing: Doing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Asks {
        /// Whether its leases are to be renewed first.
        renews: bool,
    },
    Leaves {
        /// How many parts it may be known at, from the first on.
        parts: usize,
        end: End,
    },
}

/// What is to be sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To so many parts, from the first on.
    Renew(usize),
    Ask(usize),
    /// To all parts.
    Raise(Token),
    /// To so many parts, from the first on.
    Release(usize),
}

/// How a question ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Granted(Token),
    Taken,
    /// The owner has nothing, and asks for nothing any more: another one has to.
    Broken,
    Unanswered,
}

/// The answer to a question for one part.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    Granted(Token),
    Taken,
    Broken,
    Unanswered,
}

/// What became of leases that were to be renewed or raised.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    All,
    /// One at least was lost or broken.
    NotAll,
    Unanswered,
}

impl Course {
    pub(super) fn new(parts: usize) -> Self {
        Course {
            parts,
            tokens: Vec::with_capacity(parts),
            doing: Doing::Asks { renews: false },
        }
    }

    /// Begins a question.
    pub(super) fn begin(&mut self) {
        if let Doing::Asks { renews } = &mut self.doing {
            *renews = !self.tokens.is_empty();
        }
    }

    /// Where the owner asks, and waits.
    pub(super) fn waits_at(&self) -> Option<usize> {
        let is_asking = matches!(self.doing, Doing::Asks { .. });
        (is_asking && self.tokens.len() < self.parts).then_some(self.tokens.len())
    }

    /// Whether the owner may have something besides what the last question for a part says.
    pub(super) fn may_have_some(&self) -> bool {
        !self.tokens.is_empty()
    }

    pub(super) fn next(&self) -> Step {
        match self.doing {
            Doing::Leaves { parts, .. } => Step::Release(parts),
            Doing::Asks { renews } => match self.token() {
                // That renews, too.
                Some(token) => Step::Raise(token),
                None if renews => Step::Renew(self.tokens.len()),
                None => Step::Ask(self.tokens.len()),
            },
        }
    }

    /// It was granted the part at which it waits.
    pub(super) fn granted(&mut self, token: Token) {
        self.tokens.push(token);
    }

    /// The question for a part was answered, of an owner that waits for it or doesn't.
    pub(super) fn said(&mut self, said: Said, may_wait: bool) -> Option<End> {
        let has = self.tokens.len();
        match said {
            Said::Granted(token) => self.granted(token),
            Said::Taken if !may_wait && has > 0 => self.leave(has, End::Taken),
            Said::Taken => return Some(End::Taken),
            Said::Broken => self.leave(has, End::Broken),
            Said::Unanswered => return Some(End::Unanswered),
        }
        None
    }

    /// Leases were to be renewed, or raised.
    pub(super) fn kept(&mut self, kept: Kept) -> Option<End> {
        let asked = self.parts.min(self.tokens.len() + 1);
        match kept {
            Kept::All => {
                self.doing = Doing::Asks { renews: false };
                return self.token().map(End::Granted);
            }
            Kept::NotAll => self.leave(asked, End::Broken),
            Kept::Unanswered => self.leave(asked, End::Unanswered),
        }
        None
    }

    /// Parts were released. If not all have answered, that is tried again by the next question.
    pub(super) fn released(&mut self, are_all_answered: bool) -> End {
        let Doing::Leaves { parts, end } = self.doing else {
            return End::Unanswered;
        };
        self.leave(parts, End::Broken);
        if !are_all_answered {
            return End::Unanswered;
        }
        self.tokens.clear();
        end
    }

    fn leave(&mut self, parts: usize, end: End) {
        self.doing = Doing::Leaves { parts, end };
    }

    /// One token of those of all parts, if it has all.
    fn token(&self) -> Option<Token> {
        let has_all = self.tokens.len() == self.parts;
        let tokens = self.tokens.iter().copied().filter(|_| has_all);
        tokens.reduce(Token::and)
    }
}
