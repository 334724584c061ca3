//! How one owner waits for names on several slots of a cluster, and keeps them.
//!
//! The names of one slot are a [part](super::commands::Commands::parts), which is asked for, waited for, renewed and released
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

use self::course::{Course, End, Kept, Said, Step};
use self::held::Held;
use super::commands::Commands;
use super::inbox::Inbox;
use super::wait::RedisWait;
use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::{Error, Result};
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
        RedisWait::new(
            commands,
            inbox,
            self.clock.clone(),
            self.clock_skew,
            has_others,
        )
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
            let claims = self.means.commands.parts(request.claim);
            self.parts = claims.map(Parts::new);
        }
        let Some(parts) = &mut self.parts else {
            return self.wait.ask(request, pace, deadline);
        };
        let question = Question {
            means: &self.means,
            wait: &mut self.wait,
            parts,
            request,
            pace,
            deadline,
            answer: None,
            since: self.means.clock.now(),
        };
        question.ask()
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
        let request = Request {
            claim: &parts.claims[at],
            ..request
        };
        if let Some(grant) = self.wait.wait(request, pace) {
            // The next question goes on behind it.
            parts.course.granted(grant.token);
            self.wait = self.means.wait(true);
        }
        None
    }
}

impl Parts {
    fn new(claims: Vec<Claim>) -> Self {
        Parts {
            course: Course::new(claims.len()),
            claims,
        }
    }
}

/// One question for several parts.
struct Question<'a, 'p> {
    means: &'a Means,
    wait: &'a mut RedisWait,
    parts: &'a mut Parts,
    request: Request<'a>,
    pace: Option<&'a mut Pace<'p>>,
    deadline: &'a Deadline,
    /// What is told of the part at which it ends, or why something has no answer.
    answer: Option<Result<Answer, Unanswered>>,
    /// When the counters were about to be raised.
    since: BootInstant,
}

impl Question<'_, '_> {
    fn ask(mut self) -> Result<Answer, Unanswered> {
        self.parts.course.begin();
        loop {
            let end = match self.parts.course.next() {
                Step::Renew(count) => self.keep(count, Change::Renew),
                Step::Ask(at) => self.ask_for(at),
                Step::Raise(token) => {
                    // Read before sending: no server's lease starts earlier than this.
                    self.since = self.means.clock.now();
                    let raised = self.held(self.parts.claims.len());
                    let raised = raised.raise(token, self.deadline);
                    self.kept(raised)
                }
                Step::Release(count) => Some(self.release(count)),
            };
            if let Some(end) = end {
                return self.end(end);
            }
        }
    }

    fn end(self, end: End) -> Result<Answer, Unanswered> {
        let has_some = self.parts.course.may_have_some();
        match (end, self.answer) {
            (End::Granted(token), _) => Ok(Answer::Granted(Grant {
                token,
                value: None,
                since: self.since,
            })),
            (End::Taken, Some(Ok(Answer::Taken { is_queued, holder }))) => Ok(Answer::Taken {
                is_queued: is_queued || has_some,
                holder,
            }),
            (End::Taken, _) => Ok(Answer::Taken {
                is_queued: has_some,
                holder: None,
            }),
            (End::Broken, _) => Ok(Answer::Broken),
            (End::Unanswered, Some(Err(Unanswered { error, sent }))) => Err(Unanswered {
                error,
                sent: sent || has_some,
            }),
            (End::Unanswered, _) => {
                let (name, place) = (self.request.key().name(), self.means.commands.place());
                Err(Unanswered::sent(Error::unavailable(
                    Some(name),
                    place,
                    "it doesn't answer",
                )))
            }
        }
    }

    /// Asks for a part as for a single name.
    fn ask_for(&mut self, at: usize) -> Option<End> {
        let request = Request {
            claim: &self.parts.claims[at],
            ..self.request
        };
        let may_wait = self.pace.is_some();
        let answer = self
            .wait
            .ask(request, self.pace.as_deref_mut(), self.deadline);
        let said = match &answer {
            Ok(Answer::Granted(grant)) => {
                *self.wait = self.means.wait(true);
                Said::Granted(grant.token)
            }
            Ok(Answer::Taken { .. }) => Said::Taken,
            Ok(Answer::Broken) => Said::Broken,
            Err(_) => Said::Unanswered,
        };
        self.answer = Some(answer);
        self.parts.course.said(said, may_wait)
    }

    fn keep(&mut self, count: usize, change: Change<'_>) -> Option<End> {
        let kept = self.held(count).change(change, self.deadline);
        self.kept(kept)
    }

    fn kept(&mut self, answer: Result<Outcome>) -> Option<End> {
        let kept = match answer {
            Ok(Outcome::Done(_)) => Kept::All,
            Ok(Outcome::Gone(_)) => Kept::NotAll,
            Err(error) => {
                self.answer = Some(Err(Unanswered::sent(error)));
                Kept::Unanswered
            }
        };
        self.parts.course.kept(kept)
    }

    fn release(&mut self, count: usize) -> End {
        let release = Change::Release(Release::UNKNOWN);
        let released = self.held(count).change(release, self.deadline);
        let are_all_answered = released.is_ok();
        if let (Err(error), false) = (released, matches!(self.answer, Some(Err(_)))) {
            self.answer = Some(Err(Unanswered::sent(error)));
        }
        self.parts.course.released(are_all_answered)
    }

    /// What the owner has of the first parts.
    fn held(&self, count: usize) -> Held<'_> {
        Held::new(
            &self.means.commands,
            self.request,
            &self.parts.claims[..count],
        )
    }
}
