//! What was said in one look-up: whom to believe, and when enough have answered.
//!
//! | the best that nodes of a cluster said | the others have |
//! |---|---|
//! | nothing | the time of the look-up |
//! | that the cluster is down | 500 ms, and 50 ms when a majority has answered |
//! | that it isn't | 50 ms, and none when a majority has answered |
//! | that another has a slot than was known | 500 ms, but only masters |
//! | nothing of the kind | 50 ms, but only masters: one of them may take a slot over |
//!
//! | what sentinels said | the others have |
//! |---|---|
//! | nothing | the time of the look-up |
//! | where the master is | 100 ms, or less where the caller has none, and 10 ms when a majority has said so |
//!
//! The best is what has the highest epoch of any claim to slots. Where several have it, and one of them says that the
//! cluster is down, it is down: a replica may be about to take a master's place, and that master, cut off, doesn't know
//! yet. Whom to believe of each slot is decided when all was heard: see `map.rs`.

use std::{sync::Arc, time::Duration};

use super::view::View;
use crate::base::Deadline;
use crate::engine::redis::{failure::Failure, server::Server};

/// For how long the others may go on.
#[derive(Debug)]
pub(super) struct Patience {
    /// When the first has answered: one of the others may know something newer.
    first: Duration,
    /// The same where the cluster is down as the first has it: it may be cut off from the others, and nearer than they.
    loner: Duration,
    /// When a majority has answered.
    majority: Duration,
    /// Whether those that say nothing of use are a part of that majority.
    counts_silent: bool,
}

/// For how long the others may go on when the first has answered.
pub(super) const OTHERS: Duration = Duration::from_millis(50);

/// The same where the first may be cut off, or says something new, which masters have to confirm.
pub(super) const OTHERS_OF_A_LONER: Duration = Duration::from_millis(500);

impl Patience {
    pub(super) const WITH_NODES: Patience = Patience {
        first: OTHERS,
        loner: OTHERS_OF_A_LONER,
        majority: Duration::ZERO,
        counts_silent: true,
    };

    /// Shortly after a failover only one sentinel may know of it, and the fewer have answered the less likely it is
    /// among them.
    pub(super) fn with_sentinels(after_first: Duration) -> Self {
        Patience {
            first: after_first,
            loner: after_first,
            majority: Duration::from_millis(10),
            counts_silent: false,
        }
    }
}

/// Why what a server says doesn't count.
#[derive(Debug)]
pub(super) enum NoView {
    /// It is a Sentinel that knows no master of that name.
    UnknownName,
    /// It knows the command of sentinels as little as any server does.
    NoSentinel,
    /// It can't be reached, doesn't let us in or answer in time, or what it says can't be.
    Failed(Failure),
}

impl From<Failure> for NoView {
    fn from(failure: Failure) -> Self {
        NoView::Failed(failure)
    }
}

/// What was said so far.
#[derive(Debug)]
pub(super) struct Heard {
    /// How many were asked.
    pub(super) asked: usize,
    patience: Patience,
    /// How many have answered that count for a majority.
    count: usize,
    /// The highest epoch, and whether none that has it says that the cluster is down.
    best: Option<(u64, bool)>,
    pub(super) views: Vec<View>,
    pub(super) silent: Vec<(Arc<Server>, NoView)>,
    /// Until then more are listened to, and those count that have come by then: whoever listens may have been kept from
    /// it.
    pub(super) until: Deadline,
}

impl Heard {
    /// The state before the first answer of those that are asked.
    pub(super) fn nothing(asked: usize, patience: Patience, until: Deadline) -> Self {
        Heard {
            asked,
            patience,
            count: 0,
            best: None,
            views: Vec::new(),
            silent: Vec::new(),
            until,
        }
    }

    pub(super) fn add(&mut self, server: &Arc<Server>, said: Result<View, NoView>) {
        let mut counts = self.patience.counts_silent;
        match said {
            Ok(view) if view.is_usable() => {
                counts = true;
                let patience = if view.is_up {
                    self.patience.first
                } else {
                    self.patience.loner
                };
                // Each may shorten the wait, and none makes it longer.
                self.until = self.until.within(patience);
                self.best = Some(match self.best {
                    Some((epoch, is_up)) if epoch == view.newest() => (epoch, is_up && view.is_up),
                    best => best
                        .max(Some((view.newest(), view.is_up)))
                        .unwrap_or_default(),
                });
                self.views.push(view);
            }
            Ok(_) => {}
            Err(why) => self.silent.push((server.clone(), why)),
        }
        self.count += usize::from(counts);
        if let Some((_, is_up)) = self.best
            && self.count > self.asked / 2
        {
            self.until = self.until.within(if is_up {
                self.patience.majority
            } else {
                self.patience.first
            });
        }
    }
}

/// The failure that says more of why a cluster can't be used.
pub(crate) fn worse(one: Option<Failure>, other: Failure) -> Option<Failure> {
    let weight = |failure: &Failure| match failure {
        Failure::Denied(_) => 3,
        Failure::Other(_) | Failure::Conflict(_) => 2,
        Failure::Closed(_) => 1,
        _ => 0,
    };
    match one {
        Some(one) if weight(&one) >= weight(&other) => Some(one),
        _ => Some(other),
    }
}

#[cfg(test)]
mod tests;
