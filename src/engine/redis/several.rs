//! How one owner waits for names on several slots of a cluster, and keeps them.
//!
//! The names of one slot are a [part](leases::parts), which is asked for, waited for, renewed and released as a single
//! name is, by the same scripts. [`Course`] decides what is sent next; here it is sent. Where all names are on one
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
//! What always holds: the lease is valid from before the counters are raised, when each part was still the owner's; its
//! token is above all earlier ones of each name.
//!
//! # The course
//!
//! [`Course`] decides alone, without time and without I/O. Parts have numbers, in the order of their slots, which is
//! the same for all processes. The owner takes them one after the other, and is always in one of these states:
//!
//! | state | it has | what it sends, and what ends the state |
//! |---|---|---|
//! | asks | the parts in front of one, and perhaps a place in the queue of that | it asks for that one as for a single name, until it is granted: then for the next. A question with leases of parts renews them first |
//! | all parts granted | all parts, by several tokens | it raises their counters to the largest token, and has them all |
//! | leaves | no one knows | it releases each part that it asked for, until each release is answered. Another owner begins anew |
//!
//! An owner leaves if one of its leases is lost, broken, or not known to be renewed, and if it doesn't wait for a part
//! that is taken. Having left, it asks for nothing any more: so a release that is carried out late takes nothing from
//! it.
//!
//! What always holds: an owner that is in the queue of a part has nothing behind that part. So each waits for owners
//! that have that part, and wait, if they do, at parts behind it: nobody waits for itself.

use super::leases::{self, Held};
use super::shards::Shards;
use super::waiter::{RedisWait, WaitDeps};
use crate::base::{BootInstant, Claim, Deadline, Key, Mode, Result, Token};
use crate::engine::{Answer, Change, Failed, Grant, Outcome, Pace, Release, Request, Wait};

/// How one owner waits for what it claims, wherever that is.
pub(super) struct Waiting {
    deps: WaitDeps,
    /// For all, or for the part at which the owner waits.
    wait: RedisWait,
    /// Set as soon as it is known that there are several parts.
    parts: Option<Parts>,
    /// The same of a queue's shards.
    shards: Option<Shards>,
}

struct Parts {
    claims: Vec<Claim>,
    course: Course,
}

impl Waiting {
    pub(super) fn new(deps: WaitDeps) -> Self {
        Waiting {
            wait: RedisWait::new(deps.clone(), false),
            deps,
            parts: None,
            shards: None,
        }
    }
}

impl Wait for Waiting {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        if request.claim.mode == Mode::Task {
            if self.shards.is_none() {
                self.shards = Shards::new(&self.deps, request.claim);
            }
            return match &mut self.shards {
                Some(shards) => shards.ask(request, pace, deadline),
                None => self.wait.ask(request, pace, deadline),
            };
        }
        if self.parts.is_none() {
            let claims = leases::parts(&self.deps.scripts, request.claim);
            self.parts = claims.map(|claims| Parts {
                course: Course::new(claims.len()),
                claims,
            });
        }
        let Some(Parts { claims, course }) = &mut self.parts else {
            return self.wait.ask(request, pace, deadline);
        };
        let question = Question {
            since: self.deps.clock.now(),
            deps: &self.deps,
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

    fn shard(&self) -> Option<&Key> {
        self.shards.as_ref()?.granted()
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        if let Some(shards) = &mut self.shards {
            shards.wait(request, pace);
            return None;
        }
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
            self.wait = RedisWait::new(self.deps.clone(), true);
        }
        None
    }
}

/// One question for several parts.
struct Question<'a, 'p> {
    deps: &'a WaitDeps,
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
    failed: Option<Failed>,
}

impl Question<'_, '_> {
    fn ask(mut self, course: &mut Course) -> Result<Answer, Failed> {
        course.begin();
        let end = loop {
            let step = course.next();
            let said = self.take(step).unwrap_or_else(|failed| {
                self.failed.get_or_insert(failed);
                Said::Failed
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
            (Said::Done | Said::Failed, failed) => {
                let (scripts, key) = (&self.deps.scripts, self.request.key());
                let silent = || Failed::sent(scripts.unavailable(key, "it doesn't answer"));
                let Failed { error, sent } = failed.unwrap_or_else(silent);
                let sent = sent || has_some;
                Err(Failed { error, sent })
            }
        }
    }

    /// Sends what a step says.
    fn take(&mut self, step: Step) -> Result<Said, Failed> {
        match step {
            Step::Ask(at) => self.ask_for(at),
            Step::Renew(count) => kept(self.held(count).change(Change::Renew, self.deadline)),
            Step::Raise(token) => {
                // Read before sending: no server's lease starts earlier than this.
                self.since = self.deps.clock.now();
                kept(self.held(self.claims.len()).raise(token, self.deadline))
            }
            Step::Release(count) => {
                let release = Change::Release(Release::UNKNOWN);
                let released = self.held(count).change(release, self.deadline);
                released.map(|_| Said::Done).map_err(Failed::sent)
            }
        }
    }

    /// Asks for a part as for a single name.
    fn ask_for(&mut self, at: usize) -> Result<Said, Failed> {
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
                *self.wait = RedisWait::new(self.deps.clone(), true);
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
        Held::new(&self.deps.scripts, self.request, &self.claims[..count])
    }
}

/// What became of leases that were renewed or raised.
fn kept(answer: Result<Outcome>) -> Result<Said, Failed> {
    let is_done = answer.map_err(Failed::sent)?.is_done();
    Ok(if is_done { Said::Done } else { Said::Broken })
}

/// What an owner has of several parts, and what it does next.
#[derive(Debug)]
pub(super) struct Course {
    parts: usize,
    /// The tokens of the parts that it has, from the first on.
    tokens: Vec<Token>,
    /// Whether its leases are to be renewed before it asks.
    renews: bool,
    leaves: Option<Leaving>,
}

/// An owner that leaves.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    /// How many parts it may be known at, from the first on.
    parts: usize,
    end: Said,
}

/// What is to be sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To this number of parts, from the first on.
    Renew(usize),
    Ask(usize),
    /// To all parts.
    Raise(Token),
    /// To this number of parts, from the first on.
    Release(usize),
}

/// What comes of a step, and how a question ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A part, or in the end all of them.
    Granted(Token),
    /// All leases were renewed or raised, or all parts released.
    Done,
    Taken,
    /// A lease at least was lost or broken. In the end: the owner has nothing, and asks for nothing any more. Another
    /// one has to.
    Broken,
    Failed,
}

impl Course {
    pub(super) fn new(parts: usize) -> Self {
        Course {
            parts,
            tokens: Vec::with_capacity(parts),
            renews: false,
            leaves: None,
        }
    }

    /// Begins a question.
    pub(super) fn begin(&mut self) {
        self.renews = !self.tokens.is_empty();
    }

    /// Where the owner asks, and waits.
    pub(super) fn waits_at(&self) -> Option<usize> {
        let has = self.tokens.len();
        (self.leaves.is_none() && has < self.parts).then_some(has)
    }

    /// Whether the owner may have something besides what the last question for a part says.
    pub(super) fn may_have_some(&self) -> bool {
        !self.tokens.is_empty()
    }

    pub(super) fn next(&self) -> Step {
        let has = self.tokens.len();
        match self.leaves {
            Some(Leaving { parts, .. }) => Step::Release(parts),
            None => match self.token() {
                // That renews, too.
                Some(token) => Step::Raise(token),
                None if self.renews => Step::Renew(has),
                None => Step::Ask(has),
            },
        }
    }

    /// It was granted the part at which it waits.
    pub(super) fn granted(&mut self, token: Token) {
        self.tokens.push(token);
    }

    /// What was said to a step, of an owner that waits for parts that are taken or doesn't. Gives the end of the
    /// question.
    pub(super) fn said(&mut self, step: Step, said: Said, may_wait: bool) -> Option<Said> {
        match (step, said) {
            (Step::Ask(_), Said::Granted(token)) => self.granted(token),
            (Step::Ask(has), Said::Taken) if !may_wait && has > 0 => self.leave(has, said),
            (Step::Ask(has), Said::Broken) => self.leave(has, said),
            (Step::Ask(_), _) => return Some(said),
            (Step::Renew(_), Said::Done) => self.renews = false,
            (Step::Raise(token), Said::Done) => return Some(Said::Granted(token)),
            (Step::Renew(_) | Step::Raise(_), _) => {
                self.leave(self.parts.min(self.tokens.len() + 1), said);
            }
            (Step::Release(parts), _) => return Some(self.released(parts, said)),
        }
        None
    }

    /// If not all parts have answered, they are released again by the next question.
    fn released(&mut self, parts: usize, said: Said) -> Said {
        let end = self.leaves.map_or(Said::Broken, |leaving| leaving.end);
        self.leave(parts, Said::Broken);
        if said != Said::Done {
            return Said::Failed;
        }
        self.tokens.clear();
        end
    }

    fn leave(&mut self, parts: usize, end: Said) {
        self.leaves = Some(Leaving { parts, end });
    }

    /// One token of those of all parts, if it has all.
    fn token(&self) -> Option<Token> {
        let has_all = self.tokens.len() == self.parts;
        let tokens = self.tokens.iter().copied().filter(|_| has_all);
        tokens.reduce(Token::and)
    }
}
