//! How long, and how often, a call tries.

use std::time::{Duration, Instant};

use crate::base::limits::{CANCELLED, GRACE, RELEASE};
use crate::base::{Deadline, Options, Waits, sys::time};
use crate::{acquire::wait_log::WaitLog, engine::Pace};

/// How long, and how often, a call tries.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    deadline: Deadline,
    attempts: Option<u32>,
    made: u64,
    pauses: Waits,
    since: Instant,
    pub(crate) log: WaitLog,
}

impl RetryBudget {
    pub(crate) fn new(
        deadline: Deadline,
        attempts: Option<u32>,
        options: &Options,
        since: Instant,
    ) -> Self {
        RetryBudget {
            deadline,
            attempts,
            made: 0,
            pauses: options.backoff.waits(),
            since,
            log: WaitLog::default(),
        }
    }

    /// Begins an attempt, and says whether it is the last.
    pub(crate) fn begin(&mut self) -> bool {
        self.made += 1;
        self.attempts.is_some_and(|most| self.made >= most.into()) || self.deadline.is_over()
    }

    /// Makes the next attempt the last.
    pub(crate) fn run_out(&mut self) {
        self.attempts = Some(0);
    }

    /// How the engine's wait is to ask.
    pub(crate) fn pace(&mut self) -> Pace<'_> {
        Pace {
            counted: self.attempts.is_some(),
            backoff: &mut self.pauses,
            until: &self.deadline,
        }
    }

    /// By when a call that has no lease has to be done. One with a deadline, or that was cancelled, has no time for an
    /// engine that doesn't answer.
    pub(crate) fn leave_by(&self, has_failed: bool) -> Deadline {
        if self.is_cancelled() {
            return Deadline::after(if has_failed {
                Duration::ZERO
            } else {
                CANCELLED
            });
        }
        match (self.deadline.is_never(), has_failed) {
            // A cancel ends this, too.
            (true, _) => self.deadline.within(RELEASE),
            (false, false) => self.deadline.plus(GRACE),
            (false, true) => Deadline::after(Duration::ZERO),
        }
    }

    /// When the wait ends in which an attempt is made after each pause, or none until the deadline.
    pub(crate) fn next_look(&mut self) -> Option<Instant> {
        if !self.counts_attempts() {
            return self.deadline.instant();
        }
        let pause = self.pauses.next().unwrap_or_default();
        let pause = pause.min(self.deadline.remaining());
        time::now().checked_add(pause)
    }

    pub(crate) fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.deadline.is_cancelled()
    }

    pub(crate) fn counts_attempts(&self) -> bool {
        self.attempts.is_some()
    }

    /// When the call began.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }
}
