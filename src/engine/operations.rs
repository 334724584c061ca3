//! Lists of names, page by page; and what engines report by themselves.

use crate::base::error::LostReason;

/// A part of a list of names.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) names: Vec<String>,
    /// Where the next page begins; `None` after the last.
    pub(crate) next: Option<Cursor>,
}

/// Where a page of a list begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Which of the engine's servers has it.
    pub(crate) part: usize,
    /// Where it begins there: 0 is the beginning, and any other number that server's own.
    pub(crate) at: u64,
    /// The name behind which it begins, where the engine lists names in order.
    pub(crate) after: Option<String>,
}

impl Cursor {
    /// The cursor after a page, behind which the server goes on at `at`; 0 is its end.
    pub(crate) fn next(&self, at: u64, parts: usize) -> Option<Self> {
        let part = self.part + usize::from(at == 0);
        (part < parts).then_some(Cursor {
            part,
            at,
            after: None,
        })
    }
}

/// Hears of leases that somebody else has ended. It is called without any lock held.
pub(crate) trait Revocations: Send + Sync {
    /// `owner` is the whole text of an owner, whoever that is. Its lease has a token below `below`; a later one, if it ever
    /// gets any, has a larger token. An engine that tells at once needs no such limit: `u64::MAX`.
    fn revoked(&self, owner: &str, below: u64, reason: LostReason);

    /// The same for an engine whose thread must not block: the guard is lost at once. What is returned calls the user's code, which
    /// may block.
    fn revoked_untold(&self, owner: &str, below: u64, reason: LostReason) -> Option<Telling> {
        self.revoked(owner, below, reason);
        None
    }
}

/// Calls the user's code, to tell it what has happened.
pub(crate) type Telling = Box<dyn FnOnce() + Send>;
