//! The place of the process in the server's line, and the thread that has it.

use super::server::Answer;
use super::{Owner, TTL, Ticks, Token};

/// The place of the process in the server's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub owner: Owner,
    /// Whether the server may know this owner.
    pub known: bool,
    /// Whether grants are heard of: without that the line isn't entered.
    pub listened: bool,
    pub seen: Option<Seen>,
    /// Whether the call before ended because the server couldn't be reached.
    pub failing: bool,
}

/// The last answer that the lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// How long ago that was asked.
    pub age: Ticks,
    pub counter: Token,
}

/// The thread that asks the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asker {
    pub place: Place,
    /// Without it, it asks a single question.
    pub seat: bool,
    /// Whether its last question failed.
    pub failing: bool,
    pub step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Ask,
    /// The question has come to the server, or was lost; the answer is on its way, or `None`: it never comes.
    Asked {
        answer: Option<Answer>,
        age: Ticks,
        waits: bool,
    },
    /// Until a grant is heard of, or it is time to ask again.
    Wait {
        due: Ticks,
    },
    /// Without a lock: the place goes to the next thread.
    End {
        failed: bool,
    },
    /// There was none.
    GiveUp {
        failed: bool,
    },
}

impl Place {
    pub fn new(owner: Owner) -> Self {
        Place {
            owner,
            known: false,
            listened: false,
            seen: None,
            failing: false,
        }
    }

    pub fn token(&mut self) -> Option<&mut Token> {
        self.seen.as_mut().map(|seen| &mut seen.counter)
    }

    pub fn tick(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.age = (seen.age + 1).min(TTL);
        }
    }
}

impl Asker {
    pub fn new(place: Place, seat: bool) -> Self {
        Asker {
            place,
            seat,
            failing: false,
            step: Step::Ask,
        }
    }
}
