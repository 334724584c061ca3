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
//!
//! Each server is asked in a thread of its own, unless it is asked as `nodes.rs` says. The thread ends with the answer,
//! with the deadline, or within [`CANCEL_LATENESS`] of when the answers are dropped. So a server that doesn't answer
//! keeps nobody waiting.

use std::{sync::Arc, time::Duration};

use super::view::View;
use crate::base::sys;
use crate::base::sys::channel::{self, Receiver, Sender};
use crate::base::{Cancel, Deadline};
use crate::engine::net::CANCEL_LATENESS;
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

/// What a server says, and which one does.
pub(super) type Said = (Arc<Server>, Result<View, NoView>);

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

/// What servers answer, in the order in which they do.
#[derive(Debug)]
pub(crate) struct Answers<T> {
    answered: Sender<Result<T, Failure>>,
    received: Receiver<Result<T, Failure>>,
    /// How many are to come.
    missing: usize,
    deadline: Deadline,
    dropped: Cancel,
}

/// Asks each of the servers by `ask`, which is given the deadline of its own calls.
pub(crate) fn ask_all<T: Send + 'static>(
    servers: &[Arc<Server>],
    deadline: &Deadline,
    ask: impl Fn(&Arc<Server>, &Deadline) -> Result<T, Failure> + Clone + Send + 'static,
) -> Answers<T> {
    let mut answers = Answers::none(deadline);
    for server in servers {
        answers.ask(server, ask.clone());
    }
    answers
}

impl<T: Send + 'static> Answers<T> {
    /// When nobody is asked yet.
    pub(super) fn none(deadline: &Deadline) -> Self {
        let (answered, received) = channel::unbounded();
        Answers {
            answered,
            received,
            missing: 0,
            deadline: deadline.clone(),
            dropped: Cancel::default(),
        }
    }

    /// Asks one more, in a thread.
    pub(super) fn ask(
        &mut self,
        server: &Arc<Server>,
        ask: impl FnOnce(&Arc<Server>, &Deadline) -> Result<T, Failure> + Send + 'static,
    ) {
        let (server, answered) = (server.clone(), self.answered.clone());
        let deadline = self.deadline.clone().or(&self.dropped);
        let asking = move || {
            let said = ask(&server, &deadline);
            // Nobody may wait for it any more.
            let _ = answered.send(said);
        };
        match sys::spawn("crosslock-lookup", asking) {
            Ok(()) => self.missing += 1,
            Err(e) => log::warn!("can't start a thread that looks a server up: {e}"),
        }
    }

    /// Adds an answer that came without a thread.
    pub(super) fn add(&mut self, answer: T) {
        self.missing += 1;
        let _ = self.answered.send(Ok(answer));
    }

    /// The next answer; `None` when all have answered, or by `until`, or when the deadline is over.
    pub(crate) fn next(&mut self, until: &Deadline) -> Option<Result<T, Failure>> {
        while self.missing > 0 {
            let is_over = until.is_over() || self.deadline.is_over();
            let patience = until.remaining().min(self.deadline.remaining());
            match self.received.recv_timeout(patience.min(CANCEL_LATENESS)) {
                Ok(answer) => {
                    self.missing -= 1;
                    return Some(answer);
                }
                Err(_) if is_over => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// The same, if it is here.
    pub(super) fn next_now(&mut self) -> Option<Result<T, Failure>> {
        let answer = self.received.try_recv().ok()?;
        self.missing -= 1;
        Some(answer)
    }
}

impl<T> Drop for Answers<T> {
    fn drop(&mut self) {
        self.dropped.set();
    }
}

#[cfg(test)]
mod tests;
