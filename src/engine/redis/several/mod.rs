//! How one owner waits for names on several slots of a cluster, and keeps them.
//!
//! The names of one slot are a [part](held::parts), which is asked for, waited for, renewed and released
//! as a single name is, by the same scripts. [`Course`] decides what is sent next; here it is sent. Where all names are on one
//! slot, which is always so without a cluster, there is one part, and its [`RedisWait`] is all there is.
//!
//! | who | owns | until |
//! |---|---|---|
//! | [`Waiting`] | the course; the wait of the part at which the owner waits, with its subscription | the contender ends |
//! | the owner | leases of the parts in front of that one, a place in its queue | it leaves, or its contender is released |
//! | the lease | all parts, by one token | its release, which releases each part |
//!
//! Without contention a call takes a round trip for each part, and one to raise all; a release takes one.
//!
//! What always holds: the lease is valid from before the counters are raised, when each part was still the owner's; its token is
//! above all earlier ones of each name.

use std::sync::Arc;
use std::time::Duration;

use self::course::{Course, Said, Step};
use self::held::Held;
use super::commands::Commands;
use super::inbox::Inbox;
use super::wait::RedisWait;
use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::Result;
use crate::engine::{Answer, Change, Grant, Outcome, Pace, Release, Request, Unanswered, Wait};

mod course;
pub(super) mod held;

/// What a wait is made of.
pub(super) struct Means {
    pub(super) commands: Arc<Commands>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) clock_skew: Duration,
}

/// How one owner waits for what it claims, wherever that is.
pub(super) struct Waiting {
    means: Means,
    /// For all, or for the part at which the owner waits.
    wait: RedisWait,
    /// Set as soon as it is known that there are several parts.
    parts: Option<Parts>,
}

struct Parts {
    claims: Vec<Claim>,
    course: Course,
}

impl Means {
    fn wait(&self, has_others: bool) -> RedisWait {
        let (commands, inbox) = (self.commands.clone(), self.inbox.clone());
        let (clock, clock_skew) = (self.clock.clone(), self.clock_skew);
        RedisWait::new(commands, inbox, clock, clock_skew, has_others)
    }
}

impl Waiting {
    pub(super) fn new(means: Means) -> Self {
        Waiting {
            wait: means.wait(false),
            means,
            parts: None,
        }
    }
}

impl Wait for Waiting {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        if self.parts.is_none() {
            let claims = held::parts(&self.means.commands, request.claim);
            self.parts = claims.map(|claims| Parts {
                course: Course::new(claims.len()),
                claims,
            });
        }
        let Some(Parts { claims, course }) = &mut self.parts else {
            return self.wait.ask(request, pace, deadline);
        };
        let question = Question {
            since: self.means.clock.now(),
            means: &self.means,
            wait: &mut self.wait,
            claims,
            request,
            pace,
            deadline,
            taken: (false, None),
            failed: None,
        };
        question.ask(course)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let Some(parts) = &mut self.parts else {
            return self.wait.wait(request, pace);
        };
        let Some(at) = parts.course.waits_at() else {
            let pause = pace.next_pause().min(request.ttl / 3);
            pace.until.sleep(pause);
            return None;
        };
        let claim = &parts.claims[at];
        if let Some(grant) = self.wait.wait(Request { claim, ..request }, pace) {
            // The next question goes on behind it.
            parts.course.granted(grant.token);
            self.wait = self.means.wait(true);
        }
        None
    }
}

/// One question for several parts.
struct Question<'a, 'p> {
    means: &'a Means,
    wait: &'a mut RedisWait,
    claims: &'a [Claim],
    request: Request<'a>,
    pace: Option<&'a mut Pace<'p>>,
    deadline: &'a Deadline,
    /// When the counters were about to be raised.
    since: BootInstant,
    /// How the part is taken at which it ends: whether the owner is in the queue, and who has it.
    taken: (bool, Option<String>),
    /// Why something has no answer, first.
    failed: Option<Unanswered>,
}

impl Question<'_, '_> {
    fn ask(mut self, course: &mut Course) -> Result<Answer, Unanswered> {
        course.begin();
        let end = loop {
            let step = course.next();
            let said = self.take(step).unwrap_or_else(|unanswered| {
                self.failed.get_or_insert(unanswered);
                Said::Unanswered
            });
            if let Some(end) = course.said(step, said, self.pace.is_some()) {
                break end;
            }
        };
        let has_some = course.may_have_some();
        match (end, self.failed) {
            (Said::Granted(token), _) => Ok(Answer::Granted(Grant {
                token,
                value: None,
                since: self.since,
            })),
            (Said::Taken, _) => Ok(Answer::Taken {
                is_queued: self.taken.0 || has_some,
                holder: self.taken.1,
            }),
            (Said::Broken, _) => Ok(Answer::Broken),
            (Said::Done | Said::Unanswered, failed) => {
                let (commands, key) = (&self.means.commands, self.request.key());
                let silent = || Unanswered::sent(commands.unavailable(key, "it doesn't answer"));
                let Unanswered { error, sent } = failed.unwrap_or_else(silent);
                let sent = sent || has_some;
                Err(Unanswered { error, sent })
            }
        }
    }

    /// Sends what a step says.
    fn take(&mut self, step: Step) -> Result<Said, Unanswered> {
        match step {
            Step::Ask(at) => self.ask_for(at),
            Step::Renew(count) => kept(self.held(count).change(Change::Renew, self.deadline)),
            Step::Raise(token) => {
                // Read before sending: no server's lease starts earlier than this.
                self.since = self.means.clock.now();
                kept(self.held(self.claims.len()).raise(token, self.deadline))
            }
            Step::Release(count) => {
                let release = Change::Release(Release::UNKNOWN);
                let released = self.held(count).change(release, self.deadline);
                released.map(|_| Said::Done).map_err(Unanswered::sent)
            }
        }
    }

    /// Asks for a part as for a single name.
    fn ask_for(&mut self, at: usize) -> Result<Said, Unanswered> {
        let claim = &self.claims[at];
        let (request, pace) = (
            Request {
                claim,
                ..self.request
            },
            self.pace.as_deref_mut(),
        );
        Ok(match self.wait.ask(request, pace, self.deadline)? {
            Answer::Granted(grant) => {
                *self.wait = self.means.wait(true);
                Said::Granted(grant.token)
            }
            Answer::Taken { is_queued, holder } => {
                self.taken = (is_queued, holder);
                Said::Taken
            }
            Answer::Broken => Said::Broken,
        })
    }

    /// What the owner has of the first parts.
    fn held(&self, count: usize) -> Held<'_> {
        Held::new(&self.means.commands, self.request, &self.claims[..count])
    }
}

/// What became of leases that were renewed or raised.
fn kept(answer: Result<Outcome>) -> Result<Said, Unanswered> {
    let is_done = answer.map_err(Unanswered::sent)?.is_done();
    Ok(if is_done { Said::Done } else { Said::Broken })
}
