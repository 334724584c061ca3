//! What an owner does next that wants names on several slots: the decisions alone, without time and without I/O.
//!
//! The names of one slot are a part. Parts have numbers, in the order of their slots, which is the same for all processes. The
//! owner takes them one after the other, and is always in one of these states:
//!
//! | state | it has | what it sends, and what ends the state |
//! |---|---|---|
//! | asks | the parts in front of one, and perhaps a place in the queue of that | it asks for that one as for a single name, until it is granted: then for the next. A question with leases of parts renews them first |
//! | all parts granted | all parts, by several tokens | it raises their counters to the largest token, and has them all |
//! | leaves | no one knows | it releases each part that it asked for, until each release is answered. Another owner begins anew |
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
    /// Whether its leases are to be renewed before it asks.
    renews: bool,
    leaves: Option<Leaving>,
}

/// An owner that leaves.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    /// How many parts it may be known at, from the first on.
    parts: usize,
    end: Said,
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

/// What comes of a step, and how a question ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A part, or in the end all of them.
    Granted(Token),
    /// All leases were renewed or raised, or all parts released.
    Done,
    Taken,
    /// A lease at least was lost or broken. In the end: the owner has nothing, and asks for nothing any more. Another one has
    /// to.
    Broken,
    Unanswered,
}

impl Course {
    pub(super) fn new(parts: usize) -> Self {
        Course {
            parts,
            tokens: Vec::with_capacity(parts),
            renews: false,
            leaves: None,
        }
    }

    /// Begins a question.
    pub(super) fn begin(&mut self) {
        self.renews = !self.tokens.is_empty();
    }

    /// Where the owner asks, and waits.
    pub(super) fn waits_at(&self) -> Option<usize> {
        let has = self.tokens.len();
        (self.leaves.is_none() && has < self.parts).then_some(has)
    }

    /// Whether the owner may have something besides what the last question for a part says.
    pub(super) fn may_have_some(&self) -> bool {
        !self.tokens.is_empty()
    }

    pub(super) fn next(&self) -> Step {
        let has = self.tokens.len();
        match self.leaves {
            Some(Leaving { parts, .. }) => Step::Release(parts),
            None => match self.token() {
                // That renews, too.
                Some(token) => Step::Raise(token),
                None if self.renews => Step::Renew(has),
                None => Step::Ask(has),
            },
        }
    }

    /// It was granted the part at which it waits.
    pub(super) fn granted(&mut self, token: Token) {
        self.tokens.push(token);
    }

    /// What was said to a step, of an owner that waits for parts that are taken or doesn't. Gives the end of the question.
    pub(super) fn said(&mut self, step: Step, said: Said, may_wait: bool) -> Option<Said> {
        match (step, said) {
            (Step::Ask(_), Said::Granted(token)) => self.granted(token),
            (Step::Ask(has), Said::Taken) if !may_wait && has > 0 => self.leave(has, said),
            (Step::Ask(has), Said::Broken) => self.leave(has, said),
            (Step::Ask(_), _) => return Some(said),
            (Step::Renew(_), Said::Done) => self.renews = false,
            (Step::Raise(token), Said::Done) => return Some(Said::Granted(token)),
            (Step::Renew(_) | Step::Raise(_), _) => {
                self.leave(self.parts.min(self.tokens.len() + 1), said);
            }
            (Step::Release(parts), _) => return Some(self.released(parts, said)),
        }
        None
    }

    /// If not all parts have answered, they are released again by the next question.
    fn released(&mut self, parts: usize, said: Said) -> Said {
        let end = self.leaves.map_or(Said::Broken, |leaving| leaving.end);
        self.leave(parts, Said::Broken);
        if said != Said::Done {
            return Said::Unanswered;
        }
        self.tokens.clear();
        end
    }

    fn leave(&mut self, parts: usize, end: Said) {
        self.leaves = Some(Leaving { parts, end });
    }

    /// One token of those of all parts, if it has all.
    fn token(&self) -> Option<Token> {
        let has_all = self.tokens.len() == self.parts;
        let tokens = self.tokens.iter().copied().filter(|_| has_all);
        tokens.reduce(Token::and)
    }
}
