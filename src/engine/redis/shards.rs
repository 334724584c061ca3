//! How a worker waits for a task of a queue whose shards are on several slots of a cluster: in the line of each shard.
//!
//! It asks the shards one after the other, from any on, until one has a task for it. Then it leaves the lines of the
//! others, whose next workers are called if it was. While it waits, one bell rings for the messages of all shards; each
//! shard has heartbeats of its own. A shard that calls while the worker asks others is asked next. A shard that doesn't
//! answer is asked last, so it delays the others by one question for each of its heartbeats.
//!
//! What always holds: a worker has a task of one shard at most. What an unanswered question may have taken is given
//! back when the worker leaves that shard.

use std::collections::VecDeque;
use std::time::Instant;

use super::inbox::ring_when_cancelled;
use super::waiter::{RedisWait, WaitDeps};
use super::{leases, leases::Held};
use crate::base::limits::{CANCELLED, RELEASE};
use crate::base::{Claim, Deadline, Key, sys};
use crate::engine::{Answer, Change, Failed, Pace, Release, Request, Wait};

pub(super) struct Shards {
    deps: WaitDeps,
    all: Vec<Shard>,
    /// Where it begins to ask.
    first: usize,
    /// Which one has given a task.
    granted: Option<usize>,
}

struct Shard {
    claim: Claim,
    wait: RedisWait,
    /// `None`: at once.
    asks_at: Option<Instant>,
    /// Whether the worker has asked it, and hasn't waited since.
    was_asked: bool,
    /// Whether the worker may be in its line, or have a task of it.
    may_know: bool,
    has_failed: bool,
}

impl Shards {
    /// `None` where the claim is about one name.
    pub(super) fn new(deps: &WaitDeps, claim: &Claim) -> Option<Self> {
        let shard = |claim| Shard {
            claim,
            wait: RedisWait::new(deps.clone(), false),
            asks_at: None,
            was_asked: false,
            may_know: false,
            has_failed: false,
        };
        let all: Vec<_> = leases::parts(&deps.scripts, claim)?
            .into_iter()
            .map(shard)
            .collect();
        Some(Shards {
            deps: deps.clone(),
            first: sys::random_below(all.len()),
            granted: None,
            all,
        })
    }

    pub(super) fn granted(&self) -> Option<&Key> {
        Some(&self.all[self.granted?].claim.key)
    }

    /// Asks those shards whose time has come, and before them those that call meanwhile; all of them where the worker
    /// doesn't wait.
    pub(super) fn ask(
        &mut self,
        request: Request<'_>,
        mut pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let waits = pace.is_some();
        let patience = (request.ttl / 8).max(RELEASE);
        // Those that are left over are asked next, unless the heartbeat of another is due.
        let all_by = deadline.within(patience);
        let mut next = self.due(waits);
        let mut failed = None;
        while let Some(at) = next.pop_front() {
            let by = deadline.within(patience);
            match self.all[at].ask(request, pace.as_deref_mut(), deadline, &by) {
                Ok(Answer::Granted(grant)) => {
                    // Asked again, it gives the same task.
                    (self.granted, self.first) = (Some(at), at);
                    self.leave_others(at, request, deadline);
                    return Ok(Answer::Granted(grant));
                }
                Ok(Answer::Taken { .. }) => {}
                Ok(Answer::Broken) => return Ok(Answer::Broken),
                Err(e) => failed = Some(e),
            }
            if waits && all_by.is_over() {
                break;
            }
            if waits {
                // Its task waits for this worker, which is the first in that line.
                for called in self.take_calls() {
                    next.retain(|one| *one != called);
                    next.push_front(called);
                }
            }
        }
        match failed {
            // While it waits, one shard that answers is enough.
            Some(mut failed) if !(waits && self.all.iter().any(|shard| !shard.has_failed)) => {
                failed.sent |= self.all.iter().any(|shard| shard.may_know);
                Err(failed)
            }
            _ => Ok(Answer::Taken {
                is_queued: self.all.iter().any(|shard| shard.may_know),
                holder: None,
            }),
        }
    }

    /// The shards to ask now. Those that didn't answer come last: they may take all the time that there is.
    fn due(&self, waits: bool) -> VecDeque<usize> {
        let (count, now) = (self.all.len(), sys::time::now());
        let is_due = |at: &usize| !waits || self.all[*at].asks_at.is_none_or(|at| at <= now);
        let due = (self.first..self.first + count).map(|at| at % count);
        let (failed, answering): (Vec<_>, Vec<_>) =
            due.filter(is_due).partition(|at| self.all[*at].has_failed);
        answering.into_iter().chain(failed).collect()
    }

    /// Blocks until a shard calls, or one is to be asked again.
    pub(super) fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) {
        for shard in self.all.iter_mut().filter(|one| one.was_asked) {
            shard.was_asked = false;
            let claim = &shard.claim;
            let pause = shard.wait.pause(Request { claim, ..request }, pace);
            shard.asks_at = pause.and_then(|pause| sys::time::now().checked_add(pause));
        }
        let _rings = ring_when_cancelled(&self.deps.bell, pace.until);
        while !self.is_called() && !pace.until.is_over() {
            let until = self.all.iter().filter_map(|one| one.asks_at).min();
            if until.is_none_or(|until| until <= sys::time::now()) {
                return;
            }
            self.deps.bell.wait_until(until);
        }
    }

    /// Whether there is a shard to ask at once.
    fn is_called(&mut self) -> bool {
        self.take_calls();
        self.all.iter().any(|shard| shard.asks_at.is_none())
    }

    /// The shards that have called. They are to be asked at once, also if there is no time for it now.
    fn take_calls(&mut self) -> Vec<usize> {
        let heard = self.all.iter().filter(|one| one.wait.heard().is_some());
        let heard: Vec<_> = heard.collect();
        // What came may be for any of those on its slot.
        let is_called = |shard: &Shard| heard.iter().any(|one| one.wait.hears_with(&shard.wait));
        let all = 0..self.all.len();
        let called: Vec<_> = all.filter(|at| is_called(&self.all[*at])).collect();
        for at in &called {
            (self.all[*at].asks_at, self.all[*at].was_asked) = (None, false);
        }
        called
    }

    /// Leaves the lines of all shards but one. Where that can't be, the shards drop the worker when its heartbeat is
    /// overdue.
    fn leave_others(&self, but: usize, request: Request<'_>, deadline: &Deadline) {
        let others = self.all.iter().enumerate();
        let others = others.filter(|(at, shard)| *at != but && shard.may_know);
        let claims: Vec<_> = others.map(|(_, shard)| shard.claim.clone()).collect();
        if claims.is_empty() {
            return;
        }
        let held = Held::new(&self.deps.scripts, request, &claims);
        let leave = |by: &Deadline| held.change(Change::Release(Release::UNKNOWN), by);
        let mut left = leave(&deadline.within(RELEASE));
        if left.is_err() && deadline.is_over() {
            // The end of the call, or its cancel, has cut that short.
            left = leave(&Deadline::after(CANCELLED));
        }
        if let Err(e) = left {
            log::debug!("a worker that has a task stays in the queues of other shards: {e}");
        }
    }
}

impl Shard {
    /// Asks by `by`, which is no later than the deadline of the call.
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
        by: &Deadline,
    ) -> Result<Answer, Failed> {
        let claim = &self.claim;
        let request = Request { claim, ..request };
        let answer = self.wait.ask(request, pace, by);
        (self.asks_at, self.was_asked) = (None, true);
        self.may_know = match &answer {
            Ok(Answer::Taken { is_queued, .. }) => *is_queued,
            Ok(_) => true,
            Err(failed) => failed.sent || self.may_know,
        };
        // At the end of the call there is no time for an answer.
        if let Err(Failed { error, .. }) = &answer
            && !self.has_failed
            && !deadline.is_over()
        {
            log::warn!("a shard of a delay queue doesn't answer: {error}");
        }
        self.has_failed = answer.is_err();
        answer
    }
}
