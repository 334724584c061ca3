//! How one owner waits for names on several slots of a cluster, and keeps them.
//!
//! The names of one slot are a [part](super::commands::Commands::parts), which is asked for, renewed and released as one name
//! is, by the same scripts. [`Course`] decides what is asked for next, so that no two owners wait for each other for ever;
//! here it is sent. Where all names are on one slot, which is always so without a cluster, there is one part, and its
//! [`RedisWait`] is all there is.
//!
//! | who | owns | until |
//! |---|---|---|
//! | [`Waiting`] | the course; the wait of the part at which the owner waits, with its subscription | the contender ends |
//! | the owner | what the course says that it has: leases in front of that part, a place in its queue | the question, or the release of the contender, that takes it back |
//! | the lease | all parts, by one token | its release, which releases each part |
//!
//! Without contention a call takes two rounds, one to ask and one to raise; a release takes one. What goes to one server in a
//! round goes out in one write.
//!
//! What always holds: the lease is valid from before the counters are raised, when each part was still the owner's; its token is
//! above all earlier ones of each name.

use std::sync::Arc;
use std::time::Duration;

use self::course::{Course, End, How, Kept, Said, Step};
use super::commands::Commands;
use super::inbox::Inbox;
use super::wait::{Asking, RedisWait};
use crate::base::claim::Claim;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::error::{Error, Result};
use crate::base::token::Token;
use crate::engine::heartbeat::{Acquired, IfTaken};
use crate::engine::{Answer, Gone, Grant, Outcome, Pace, Request, Unanswered, Wait};

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
    /// For which part the wait is.
    waits_for: Option<usize>,
}

impl Means {
    fn wait(&self) -> RedisWait {
        let (commands, inbox) = (self.commands.clone(), self.inbox.clone());
        RedisWait::new(commands, inbox, self.clock.clone(), self.clock_skew)
    }
}

impl Waiting {
    pub(super) fn new(means: Means) -> Self {
        Waiting {
            wait: means.wait(),
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
            error: None,
            holder: None,
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
            // The next question brings the rest.
            parts.course.heard(grant.token);
        }
        None
    }
}

impl Parts {
    fn new(claims: Vec<Claim>) -> Self {
        Parts {
            course: Course::new(claims.len()),
            claims,
            waits_for: None,
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
    /// Why a part has no answer.
    error: Option<Error>,
    /// Who has the part at which the owner waits.
    holder: Option<String>,
    /// When the counters were about to be raised.
    since: BootInstant,
}

impl Question<'_, '_> {
    fn ask(mut self) -> Result<Answer, Unanswered> {
        self.parts.course.begin(self.pace.is_some());
        loop {
            match self.parts.course.next() {
                Step::Ask(which) => self.ask_for(&which),
                Step::Release(which) => self.release(&which),
                Step::Raise(token) => self.raise(token),
                Step::End(end) => return self.end(end),
            }
        }
    }

    fn end(self, end: End) -> Result<Answer, Unanswered> {
        let course = &self.parts.course;
        match end {
            End::Granted(token) => Ok(Answer::Granted(Grant {
                token,
                value: None,
                since: self.since,
            })),
            End::Taken => Ok(Answer::Taken {
                is_queued: course.is_known(),
                holder: self.holder,
            }),
            End::Broken => Ok(Answer::Broken),
            End::Unanswered => {
                self.wait.lacks_an_answer();
                let place = self.means.commands.place();
                let name = self.request.key().name();
                let missing = || Error::unavailable(Some(name), place, "it doesn't answer");
                Err(Unanswered {
                    error: self.error.unwrap_or_else(missing),
                    sent: course.is_known(),
                })
            }
        }
    }

    fn ask_for(&mut self, which: &[(usize, How)]) {
        let place = which.iter().find(|(_, how)| *how == How::Enter);
        let asking = place.map(|(at, _)| self.begin(*at));
        let questions: Vec<_> = which
            .iter()
            .map(|(at, how)| {
                let waiting = asking.as_ref().filter(|_| *how == How::Enter);
                (
                    self.of(*at),
                    waiting.map_or(IfTaken::Leave, Asking::if_taken),
                )
            })
            .collect();
        let answers = self.means.commands.acquire_all(&questions, self.deadline);
        for ((at, how), answer) in which.iter().zip(answers) {
            match asking.as_ref().filter(|_| *how == How::Enter) {
                None => self.answered(*at, false, answer.map(|(answer, _)| answer)),
                Some(asking) => {
                    let answer = answer.map(|(answer, server)| (lasting(answer, *at), server));
                    let pace = self.pace.as_deref_mut();
                    let answer = self.wait.answered(asking, answer, pace);
                    self.answered(*at, asking.enters(), answer);
                }
            }
        }
    }

    /// Begins the question of a waiter for a part.
    fn begin(&mut self, at: usize) -> Asking {
        if self.parts.waits_for != Some(at) {
            self.parts.waits_for = Some(at);
            *self.wait = self.means.wait();
        }
        let request = Request {
            claim: &self.parts.claims[at],
            ..self.request
        };
        self.wait.begin(request, self.pace.as_deref_mut())
    }

    fn answered(&mut self, at: usize, entered: bool, answer: Result<Acquired, Unanswered>) {
        let said = match answer {
            Ok(Acquired::Granted { token, .. }) => Said::Granted(token),
            Ok(Acquired::Taken(taken)) => {
                self.holder = taken.holder.or_else(|| self.holder.take());
                Said::Taken { is_queued: entered }
            }
            Ok(Acquired::Broken) => Said::Broken,
            Err(Unanswered { error, sent }) => {
                self.keep(error);
                return self.parts.course.unanswered(at, sent);
            }
        };
        self.parts.course.said(at, said);
    }

    /// Keeps the error for the caller: rather one that no waiting mends.
    fn keep(&mut self, error: Error) {
        let is_worse = !matches!(error, Error::Unavailable { .. });
        if self.error.is_none() || is_worse {
            self.error = Some(error);
        }
    }

    fn release(&mut self, which: &[usize]) {
        let requests = self.those(which);
        let answers = self.means.commands.give_up_all(&requests, self.deadline);
        for (at, answer) in which.iter().zip(answers) {
            match answer {
                Ok(was_sent_again) => self.parts.course.released(*at, was_sent_again),
                Err(Unanswered { error, sent }) => {
                    self.keep(error);
                    self.parts.course.not_released(*at, sent);
                }
            }
        }
    }

    fn raise(&mut self, token: Token) {
        let all: Vec<_> = (0..self.parts.claims.len()).collect();
        let requests = self.those(&all);
        // Read before sending: no server's lease starts earlier than this.
        let since = self.means.clock.now();
        let answers = self
            .means
            .commands
            .raise_all(&requests, token, self.deadline);
        self.since = since;
        for (at, answer) in answers.into_iter().enumerate() {
            let kept = match answer {
                Ok(Outcome::Done(_)) => Kept::Yes,
                Ok(Outcome::Gone(Gone::Broken)) => Kept::Broken,
                Ok(Outcome::Gone(_)) => Kept::No,
                Err(error) => {
                    self.keep(error);
                    self.parts.course.unanswered(at, true);
                    continue;
                }
            };
            self.parts.course.raised(at, kept);
        }
        self.parts.course.all_raised(token);
    }

    fn of(&self, at: usize) -> Request<'_> {
        Request {
            claim: &self.parts.claims[at],
            ..self.request
        }
    }

    fn those(&self, which: &[usize]) -> Vec<Request<'_>> {
        which.iter().map(|at| self.of(*at)).collect()
    }
}

/// An owner that has parts in front of this one has leases that its heartbeats renew: they mustn't be rare, however long the
/// queue is.
fn lasting(answer: Acquired, at: usize) -> Acquired {
    match answer {
        Acquired::Taken(mut taken) if at > 0 => {
            taken.queue_length = 0;
            Acquired::Taken(taken)
        }
        answer => answer,
    }
}
