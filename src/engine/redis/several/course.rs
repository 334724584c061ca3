//! What an owner does next that wants names on several slots: the decisions alone, without time and without I/O.
//!
//! The names of one slot are a part. Parts have numbers, in the order of their slots, which is the same for all processes.
//! [`Course::next`] says what is to be sent, and is told of each answer, until it says that the question is at its end.
//!
//! | of a part the owner has | until |
//! |---|---|
//! | nothing | it asks for it |
//! | a place in the queue | it is granted, leaves, or is dropped: the next answer says so |
//! | a lease | it is released, expires or is broken: the next answer says so |
//! | what isn't known: the last question or release had no answer, or its counter wasn't raised | it is asked for again, or released |
//!
//! One question goes through these rounds; what a round sends, it sends to all parts at once:
//!
//! 1. All parts are asked for, without entering a queue. An owner that waits at a part asks for those in front, so that their
//!    leases last, and for that part as a waiter.
//! 2. If some are taken, the first of them is where the owner waits. What it has behind that is released; then it asks for the
//!    part and enters the queue. What it has in front is kept. Granted the part, it asks for those behind it: 1.
//! 3. If it has all, their counters are raised to the largest token, and the leases last for another ttl. A part that was lost
//!    meanwhile is one that is taken: 2.
//!
//! A release without an answer may be carried out late, when the owner has that part again. So such an owner asks for nothing
//! any more: it releases what it has, and another owner begins anew.
//!
//! What always holds: an owner enters the queue of a part only when it has nothing behind it. So each waits for owners that
//! have that part, and wait, if they do, at parts behind it: nobody waits for itself. What has no answer counts as taken.

use crate::base::token::Token;

#[cfg(test)]
mod tests;

/// What an owner has of several parts, and what it does next.
#[derive(Debug)]
pub(super) struct Course {
    parts: Vec<Part>,
    /// Where the owner waits, or is about to.
    waits_at: Option<usize>,
    /// Whether this question is that of a waiter. Another one that finds a part taken leaves nothing behind.
    may_wait: bool,
    outcome: Outcome,
    /// Whether a release may still come late, so that another owner has to ask.
    is_spoiled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    has: Has,
    /// How it was asked for by this question.
    asked: Option<How>,
    /// Whether this question tried to release it.
    gave_up: bool,
}

/// What the owner has of a part, as far as it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Has {
    Nothing,
    Place,
    Lease(Token),
    Unclear,
}

/// How a part is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// In no queue afterwards, if it is taken.
    Leave,
    /// In its queue afterwards.
    Enter,
}

/// What this question has met so far that ends it.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Open,
    Raised(Token),
    Broken,
    /// This part, and none in front of it, has no answer.
    Unanswered(usize),
}

/// What is to be sent next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Ask(Vec<(usize, How)>),
    Release(Vec<usize>),
    Raise(Token),
    End(End),
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
    Taken { is_queued: bool },
    Broken,
}

/// The answer to what is sent about a lease.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    Yes,
    No,
    Broken,
}

impl Course {
    pub(super) fn new(parts: usize) -> Self {
        let part = Part {
            has: Has::Nothing,
            asked: None,
            gave_up: false,
        };
        Course {
            parts: vec![part; parts],
            waits_at: None,
            may_wait: false,
            outcome: Outcome::Open,
            is_spoiled: false,
        }
    }

    /// Begins a question.
    pub(super) fn begin(&mut self, may_wait: bool) {
        self.may_wait = may_wait;
        self.outcome = Outcome::Open;
        for part in &mut self.parts {
            (part.asked, part.gave_up) = (None, false);
        }
    }

    /// Where the owner waits.
    pub(super) fn waits_at(&self) -> Option<usize> {
        self.waits_at
    }

    /// Whether the owner may be known at some part, so that it has something to take back.
    pub(super) fn is_known(&self) -> bool {
        self.parts.iter().any(|part| part.has != Has::Nothing)
    }

    /// It heard that it was granted the part at which it waits.
    pub(super) fn heard(&mut self, token: Token) {
        if let Some(at) = self.waits_at {
            self.parts[at].has = Has::Lease(token);
        }
    }

    /// What is to be done next, by what was answered so far.
    pub(super) fn next(&mut self) -> Step {
        match self.outcome {
            Outcome::Unanswered(_) if self.is_spoiled => self.release_from(0, End::Unanswered),
            _ if self.is_spoiled => self.release_from(0, End::Broken),
            Outcome::Raised(token) => Step::End(End::Granted(token)),
            Outcome::Broken => self.release_from(0, End::Broken),
            // What is behind isn't held while nobody knows how long that takes.
            Outcome::Unanswered(at) => self.release_from(at + 1, End::Unanswered),
            Outcome::Open => self.go_on(),
        }
    }

    fn go_on(&mut self) -> Step {
        if self.parts.iter().all(|part| part.asked.is_none()) {
            return self.ask_first();
        }
        let is_had = |part: &Part| matches!(part.has, Has::Lease(_)) && part.asked.is_some();
        let Some(open) = self.parts.iter().position(|part| !is_had(part)) else {
            return Step::Raise(self.token());
        };
        match (self.parts[open].asked, self.may_wait) {
            (None, _) => self.ask(
                (open..self.parts.len())
                    .map(|at| (at, How::Leave))
                    .collect(),
            ),
            (Some(How::Enter), _) => Step::End(End::Taken),
            (Some(How::Leave), false) => self.release_from(0, End::Taken),
            (Some(How::Leave), true) => match self.release_from(open + 1, End::Taken) {
                Step::End(_) => self.enter(open),
                release => release,
            },
        }
    }

    /// An owner that waits asks for what it has, and for the part at which it waits; any other for all.
    fn ask_first(&mut self) -> Step {
        let waits_at = self.waits_at.filter(|at| {
            let has = self.parts[*at].has;
            self.may_wait && !matches!(has, Has::Lease(_))
        });
        if let Some(at) = waits_at {
            // A release before had no answer.
            let release = self.release_from(at + 1, End::Taken);
            if matches!(release, Step::Release(_)) {
                return release;
            }
        }
        let in_front = waits_at.unwrap_or(self.parts.len());
        let in_front = (0..in_front).map(|at| (at, How::Leave));
        let place = waits_at.map(|at| (at, How::Enter));
        self.ask(in_front.chain(place).collect())
    }

    fn enter(&mut self, at: usize) -> Step {
        self.waits_at = Some(at);
        // Granted this one, it asks for those anew.
        self.parts[at..]
            .iter_mut()
            .for_each(|part| part.asked = None);
        self.ask(vec![(at, How::Enter)])
    }

    fn ask(&mut self, which: Vec<(usize, How)>) -> Step {
        for (at, how) in &which {
            self.parts[*at].asked = Some(*how);
        }
        Step::Ask(which)
    }

    /// Releases what the owner has from a part on, each once, and ends so when that was tried.
    fn release_from(&mut self, first: usize, end: End) -> Step {
        let mut which = Vec::new();
        for (at, part) in self.parts.iter_mut().enumerate().skip(first) {
            if part.has != Has::Nothing && !part.gave_up {
                part.gave_up = true;
                which.push(at);
            }
        }
        if which.is_empty() {
            Step::End(end)
        } else {
            Step::Release(which)
        }
    }

    /// A question for a part was answered.
    pub(super) fn said(&mut self, at: usize, said: Said) {
        let part = &mut self.parts[at];
        part.gave_up = false;
        part.has = match said {
            Said::Granted(token) => Has::Lease(token),
            Said::Taken { is_queued: true } => Has::Place,
            Said::Taken { is_queued: false } | Said::Broken => Has::Nothing,
        };
        if matches!(said, Said::Broken) {
            self.broken();
        }
    }

    /// A part was released, by one command or, if it was sent again, perhaps by two.
    pub(super) fn released(&mut self, at: usize, was_sent_again: bool) {
        self.parts[at].has = Has::Nothing;
        self.is_spoiled |= was_sent_again;
    }

    /// A release has no answer.
    pub(super) fn not_released(&mut self, at: usize, sent: bool) {
        self.is_spoiled |= sent;
        self.unanswered(at, sent);
    }

    /// A part was raised, if it was still the owner's.
    pub(super) fn raised(&mut self, at: usize, kept: Kept) {
        match kept {
            Kept::Yes => {}
            // As one that is taken; or it is the owner's anew, by a late copy of its request.
            Kept::No => {
                (self.parts[at].has, self.parts[at].asked) = (Has::Unclear, Some(How::Leave))
            }
            Kept::Broken => {
                self.parts[at].has = Has::Nothing;
                self.broken();
            }
        }
    }

    /// All that were to be raised were answered.
    pub(super) fn all_raised(&mut self, token: Token) {
        let has_all = self
            .parts
            .iter()
            .all(|part| matches!(part.has, Has::Lease(_)));
        if has_all && matches!(self.outcome, Outcome::Open) {
            self.outcome = Outcome::Raised(token);
        }
    }

    /// What was sent about a part has no answer. It may have been done if it was sent.
    pub(super) fn unanswered(&mut self, at: usize, sent: bool) {
        if sent {
            self.parts[at].has = Has::Unclear;
        }
        let first = match self.outcome {
            Outcome::Unanswered(first) => first.min(at),
            _ => at,
        };
        self.outcome = Outcome::Unanswered(first);
    }

    /// What is broken is found again by the next question, if it isn't told now.
    fn broken(&mut self) {
        if matches!(self.outcome, Outcome::Open) {
            self.outcome = Outcome::Broken;
        }
    }

    /// One token of those of all parts.
    fn token(&self) -> Token {
        let tokens = self.parts.iter().filter_map(|part| match part.has {
            Has::Lease(token) => Some(token),
            _ => None,
        });
        tokens
            .reduce(Token::and)
            .unwrap_or_else(|| Token::from_number(0))
    }
}
