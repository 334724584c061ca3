//! The book in which all that must hold is checked.

use std::collections::{BTreeMap, BTreeSet};

use crate::sync::Sender;

/// What makes an order of steps worth to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    AskedWithoutTurn,
    CancelledInQueue,
    CancelMetTurn,
    FreedWhileHeld,
    GivenAtTheLastMoment,
    HandedOver,
    KnownToBeTaken,
    WentAhead,
}

impl Seen {
    pub(crate) const ALL: [Seen; 8] = [
        Seen::AskedWithoutTurn,
        Seen::CancelledInQueue,
        Seen::CancelMetTurn,
        Seen::FreedWhileHeld,
        Seen::GivenAtTheLastMoment,
        Seen::HandedOver,
        Seen::KnownToBeTaken,
        Seen::WentAhead,
    ];
}

#[derive(Default)]
pub(crate) struct Book {
    /// Whether somebody has the lock, and who has the turn, asked for it, and waits.
    pub(crate) is_held: bool,
    pub(crate) asker: Option<Sender<()>>,
    /// How many guards have ended.
    pub(crate) ended: usize,
    pub(crate) seen: BTreeSet<Seen>,
    /// What happened, counted.
    now: u64,
    has_turn: bool,
    /// For each thread that waits, when it had entered the queue.
    waiting: BTreeMap<u64, u64>,
    /// Whether who has the turn has said that the lock is taken, how often that was said, and until when it was so.
    claimed: bool,
    claims: u64,
    claimed_until: u64,
}

impl Book {
    pub(crate) fn now(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    pub(crate) fn take_turn(&mut self) {
        assert!(!self.has_turn, "two have the turn");
        self.has_turn = true;
    }

    pub(crate) fn end_turn(&mut self) {
        assert!(self.has_turn, "a turn was given twice");
        self.has_turn = false;
    }

    /// Somebody with the turn says that the lock is taken.
    pub(crate) fn claim(&mut self) {
        self.claims += 1;
        self.claimed = true;
    }

    /// How often the lock was said to be taken by now.
    pub(crate) fn claims(&self) -> u64 {
        self.claims
    }

    /// What was said until then is over, unless the next has said it again.
    pub(crate) fn unclaim(&mut self, claims: u64) {
        let now = self.now();
        if self.claimed {
            self.claimed_until = now;
            self.claimed = self.claims != claims;
        }
    }

    /// Whether somebody said that the lock was taken, since `began`.
    pub(crate) fn was_claimed(&self, began: u64) -> bool {
        self.claimed || self.claimed_until >= began
    }

    pub(crate) fn waits(&mut self, began: u64) {
        let now = self.now();
        self.waiting.insert(began, now);
    }

    pub(crate) fn waits_no_more(&mut self, began: u64) {
        self.waiting.remove(&began);
    }

    /// First come, first served, of those that wait: nobody waits that was in the queue before this thread came.
    pub(crate) fn is_served(&mut self, began: u64) {
        let is_earlier = self.waiting.values().any(|entered| *entered < began);
        assert!(!is_earlier, "a later thread was served first");
    }

    /// Nothing is left. Tells what was seen.
    pub(crate) fn end(&mut self) -> BTreeSet<Seen> {
        assert!(!self.is_held && !self.has_turn && self.asker.is_none());
        assert!(self.waiting.is_empty());
        std::mem::take(&mut self.seen)
    }
}
