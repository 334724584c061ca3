//! How one owner comes to a lock of a quorum.
//!
//! | its place | it asks | and then |
//! |---|---|---|
//! | outside | all servers at once; where the name was taken lately, the line's server first | it has the lock; or it is taken: in line |
//! | in line | the line's server, as it would a single one, and hears of its grant there | first |
//! | first: the line's server has let it in | the other servers at once, and all when it asks again | it has the lock; or others still have it at a majority: first, and it asks again after a pause |
//!
//! What doesn't come to a majority with the line's server is given back at once. An owner of which a release has no
//! answer gives up all it has, and asks for nothing any more: the release might arrive late, and take what it was
//! granted since. Another owner begins anew. So what an owner is told to have at a server it has.

use std::{sync::Arc, time::Duration};

use super::{nodes::SILENCE, round::Said as Reply, shared::Quorum};
use crate::base::{BootInstant, Deadline, Token, sys::time};
use crate::engine::heartbeat::{Acquired, IfTaken, Taken};
use crate::engine::redis::lock_scripts::LockScripts;
use crate::engine::redis::servers::heard::worse;
use crate::engine::redis::{failure::Failure, waiter::RedisWait};
use crate::engine::{Answer, Failed, Grant, Pace, Request, Wait};

pub(super) struct QuorumWait {
    quorum: Arc<Quorum>,
    /// The server in whose queue it stands, or will, and how it waits there.
    line: usize,
    wait: RedisWait,
    place: Place,
    /// What the line's server has granted, as long as nothing was asked since.
    at_line: Option<Grant>,
    /// Whether a server that fails may have something of it.
    may_have_left: bool,
    /// Whether another owner has to ask.
    is_spent: bool,
}

enum Place {
    Outside,
    InLine,
    /// With that token, and for so many questions.
    First(u64, u32),
}

/// What one server says to a question.
enum Said {
    Granted(Token),
    Taken(Taken),
    Broken,
    Failed(Failed<Failure>),
}

/// What all servers say, as far as they have answered.
struct Poll {
    said: Vec<Option<Said>>,
    majority: usize,
}

/// One question, and when it was sent.
struct Question<'a, 'p> {
    request: Request<'a>,
    pace: Option<&'a mut Pace<'p>>,
    deadline: &'a Deadline,
    since: BootInstant,
    /// Whether the owner enters the queue of the line's server if the lock is taken.
    is_queued: bool,
}

impl Wait for QuorumWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        mut pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        if self.is_spent {
            return Ok(self.spent(request, deadline));
        }
        self.choose_line();
        if self.asks_line_first(request) {
            let within = deadline.within((request.ttl / 4).max(SILENCE));
            match self.wait.ask(request, pace.as_deref_mut(), &within) {
                Ok(Answer::Granted(grant)) => {
                    if matches!(self.place, Place::Outside) {
                        // It was free.
                        self.quorum.contended.remove(request.claim);
                    }
                    self.is_first(grant.token.number);
                    self.at_line = Some(grant);
                }
                Ok(Answer::Broken) => return Ok(self.spent(request, deadline)),
                Ok(taken) => {
                    self.place = Place::InLine;
                    return Ok(taken);
                }
                Err(failed) => self.line_failed(failed, deadline)?,
            }
        }
        self.ask_all(request, pace, deadline)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        /// Releases reach the other servers before the line's: they are on their way, or another gives back in a
        /// round trip what it got there.
        const SHORTEST: Duration = Duration::from_micros(100);
        if let Place::First(_, questions) = &mut self.place {
            *questions += 1;
            let short = SHORTEST * 2u32.saturating_pow((*questions).min(16));
            let pause = pace.next_pause().min(request.ttl / 3).min(short);
            pace.until.sleep(pause);
        } else if let Some(grant) = self.wait.wait(request, pace) {
            self.is_first(grant.token.number);
            self.at_line = Some(grant);
        }
        None
    }
}

impl QuorumWait {
    pub(super) fn new(quorum: Arc<Quorum>) -> Self {
        let line = quorum.nodes.line();
        QuorumWait {
            wait: RedisWait::new(quorum.wait_deps(line), false),
            quorum,
            line,
            place: Place::Outside,
            at_line: None,
            may_have_left: false,
            is_spent: false,
        }
    }

    /// Outside, the line is that of the first server that is up.
    fn choose_line(&mut self) {
        let line = self.quorum.nodes.line();
        if matches!(self.place, Place::Outside) && line != self.line {
            self.stand_at(line);
        }
    }

    fn stand_at(&mut self, line: usize) {
        self.wait = RedisWait::new(self.quorum.wait_deps(line), false);
        (self.line, self.place, self.at_line) = (line, Place::Outside, None);
    }

    fn is_first(&mut self, token: u64) {
        self.quorum.nodes.saw(token, time::now());
        self.place = match self.place {
            Place::First(_, questions) => Place::First(token, questions),
            Place::Outside | Place::InLine => Place::First(token, 0),
        };
    }

    fn asks_line_first(&self, request: Request<'_>) -> bool {
        match self.place {
            Place::InLine => true,
            Place::First(..) => false,
            Place::Outside => self.quorum.contended.has(request.claim),
        }
    }

    /// The line's server doesn't answer: the owner goes to the next, if that is up.
    fn line_failed(&mut self, failed: Failed, deadline: &Deadline) -> Result<(), Failed> {
        if deadline.is_over() {
            // It may only have had too little time.
            return Err(failed);
        }
        let nodes = &self.quorum.nodes;
        if nodes.all[self.line].votes() {
            nodes.all[self.line].pass_over(&failed.error.to_string());
        }
        let next = nodes.line();
        let is_lasting = next == self.line;
        self.may_have_left |= failed.sent;
        self.stand_at(next);
        if is_lasting { Err(failed) } else { Ok(()) }
    }

    fn ask_all(
        &mut self,
        request: Request<'_>,
        mut pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let (scripts, nodes) = (self.quorum.scripts().clone(), &self.quorum.nodes);
        let tokens_from = Some(match self.place {
            Place::First(token, _) => token,
            Place::Outside | Place::InLine => nodes.time(),
        });
        let inbox = self.wait.inbox(request);
        let if_taken = self
            .wait
            .if_taken(request, pace.as_deref_mut(), inbox.as_ref());
        let at_line = self.at_line.take();
        let call = |at| match at == self.line {
            true if at_line.is_some() => None,
            true => Some(scripts.acquisition(request, if_taken, tokens_from)),
            false => Some(scripts.acquisition(request, IfTaken::Leave, tokens_from)),
        };
        let calls: Vec<_> = (0..nodes.all.len()).map(call).collect();
        // Read before sending: no server's lease starts earlier than this.
        let since = self.quorum.clock.now();
        let question = Question {
            request,
            pace,
            deadline,
            since: (at_line.as_ref()).map_or(since, |grant| grant.since.min(since)),
            is_queued: matches!(if_taken, IfTaken::Wait { .. }),
        };
        let mut poll = Poll::new(calls.len());
        poll.said[self.line] = at_line.map(|grant| Said::Granted(grant.token));
        nodes.round(&calls, deadline, |at, reply| {
            poll.hear(at, meaning(&scripts, request, reply))
        });
        drop((calls, inbox));
        self.decide(poll, question)
    }

    fn decide(&mut self, poll: Poll, question: Question<'_, '_>) -> Result<Answer, Failed> {
        let (request, deadline) = (question.request, question.deadline);
        if poll
            .said
            .iter()
            .any(|said| matches!(said, Some(Said::Broken)))
        {
            return Ok(self.spent(request, deadline));
        }
        let line = poll.line().unwrap_or(self.line);
        if poll.grants() >= poll.majority && poll.has_granted(line) {
            return self.granted(&poll, &question);
        }
        let answered = poll.grants() + poll.refusals();
        if answered < poll.majority {
            self.give_back(request, poll.all_that_may_have(), deadline);
            self.stand_at(self.quorum.nodes.line());
            let error = self
                .quorum
                .too_few(request.key(), answered, poll.into_failure());
            return Err(Failed::sent(error));
        }
        Ok(self.taken(line, poll, question))
    }

    /// A majority has granted it. Its token is the largest, which a majority must have.
    fn granted(&mut self, poll: &Poll, question: &Question<'_, '_>) -> Result<Answer, Failed> {
        let (quorum, request, deadline) = (&self.quorum, question.request, question.deadline);
        let tokens: Vec<_> = poll.tokens().collect();
        let token = poll.token();
        quorum.nodes.saw(token.number, time::now());
        let others = tokens.iter().filter(|(_, its)| *its != token);
        let others: Vec<_> = others.map(|(at, _)| *at).collect();
        let have = tokens.len() - others.len();
        if have < poll.majority {
            let (raised, broken) = quorum.raise(request, token, others, deadline);
            if broken.is_some() {
                return Ok(self.spent(request, deadline));
            }
            if have + raised < poll.majority {
                // It has it, and asks again.
                let error = quorum.too_few(request.key(), have + raised, None);
                return Err(Failed::sent(error));
            }
        }
        Ok(Answer::Granted(Grant {
            token,
            value: None,
            since: question.since,
        }))
    }

    /// Others have it at so many servers that no majority is left. The owner gives back what it has, but for its place
    /// in the line.
    fn taken(&mut self, line: usize, mut poll: Poll, question: Question<'_, '_>) -> Answer {
        let (request, deadline, waits) =
            (question.request, question.deadline, question.pace.is_some());
        let has_moved = line != self.line;
        let old_line = has_moved.then_some(self.line);
        let others = poll
            .all_that_may_have()
            .filter(|at| !(waits && *at == line));
        let others: Vec<_> = others.chain(old_line).collect();
        self.give_back(request, others.into_iter(), deadline);
        if has_moved {
            self.stand_at(line);
        }
        self.quorum.contended.insert(request.claim);
        let (is_queued, holder) = match poll.said[line].take() {
            Some(Said::Granted(token)) if waits => {
                self.is_first(token.number);
                (true, None)
            }
            Some(Said::Taken(taken)) => {
                self.place = Place::InLine;
                let server = self.quorum.nodes.all[line].server.clone();
                let is_queued = question.is_queued && !has_moved;
                let asked = (question.since, is_queued);
                let holder = self.wait.answered(asked, taken, server, question.pace);
                (is_queued, holder)
            }
            _ => (false, None),
        };
        // Its caller leaves everywhere when it gives up.
        let may_have_some = self.may_have_left || self.is_spent;
        Answer::Taken {
            is_queued: is_queued || may_have_some,
            holder,
        }
    }

    /// Gives back what the owner may have at these servers.
    fn give_back(
        &mut self,
        request: Request<'_>,
        servers: impl Iterator<Item = usize>,
        deadline: &Deadline,
    ) {
        let mut servers = servers.peekable();
        if servers.peek().is_some() {
            self.is_spent |= self.quorum.give_back(request, servers, deadline) != 0;
        }
    }

    /// The owner was broken. It gives back the rest.
    fn spent(&mut self, request: Request<'_>, deadline: &Deadline) -> Answer {
        self.is_spent = true;
        let all = 0..self.quorum.nodes.all.len();
        self.quorum.give_back(request, all, deadline);
        Answer::Broken
    }
}

impl Poll {
    fn new(servers: usize) -> Self {
        Poll {
            said: (0..servers).map(|_| None).collect(),
            majority: servers / 2 + 1,
        }
    }

    /// Whether it is enough. Where the lock is taken, all that was granted has to be known.
    fn hear(&mut self, at: usize, said: Said) -> bool {
        self.said[at] = Some(said);
        let has_failed = |said: &&Option<Said>| matches!(said, Some(Said::Failed(_)));
        let line = self.said.iter().find(|said| !has_failed(said));
        let is_line_in = matches!(line, Some(Some(Said::Granted(_))));
        let is_all = self.said.iter().all(Option::is_some);
        // Whether the holder before has left it is known for certain when all have answered.
        let is_clear = || self.tokens().all(|(_, token)| !token.abandoned);
        is_all || is_line_in && self.grants() >= self.majority && is_clear()
    }

    /// The one token of all that granted it: no smaller than any. The holder before has left the lock if it may have
    /// left it at a majority. Less than that had it only in passing, or have missed its release.
    fn token(&self) -> Token {
        let largest = self.tokens().map(|(_, token)| token.number).max();
        let left = self.tokens().filter(|(_, token)| token.abandoned).count();
        let silent = self.said.len() - self.grants();
        let number = largest.unwrap_or(0);
        Token::of_class(number, left > 0 && left + silent >= self.majority)
    }

    /// The first that has answered.
    fn line(&self) -> Option<usize> {
        let has_answered = |said: &Option<Said>| !matches!(said, None | Some(Said::Failed(_)));
        self.said.iter().position(has_answered)
    }

    fn tokens(&self) -> impl Iterator<Item = (usize, Token)> {
        let all = self.said.iter().enumerate();
        all.filter_map(|(at, said)| match said {
            Some(Said::Granted(token)) => Some((at, *token)),
            _ => None,
        })
    }

    fn grants(&self) -> usize {
        self.tokens().count()
    }

    fn refusals(&self) -> usize {
        let is_taken = |said: &&Option<Said>| matches!(said, Some(Said::Taken(_)));
        self.said.iter().filter(is_taken).count()
    }

    fn has_granted(&self, at: usize) -> bool {
        matches!(self.said[at], Some(Said::Granted(_)))
    }

    /// The servers at which the owner has the lock, or may have it.
    fn all_that_may_have(&self) -> impl Iterator<Item = usize> {
        let all = self.said.iter().enumerate();
        let may_have = |said: &Option<Said>| match said {
            None | Some(Said::Granted(_)) => true,
            Some(Said::Failed(failed)) => failed.sent,
            Some(Said::Taken(_) | Said::Broken) => false,
        };
        all.filter(move |(_, said)| may_have(said))
            .map(|(at, _)| at)
    }

    fn into_failure(self) -> Option<Failure> {
        let failed = self.said.into_iter().filter_map(|said| match said {
            Some(Said::Failed(failed)) => Some(failed.error),
            _ => None,
        });
        failed.fold(None, worse)
    }
}

/// What an answer to a question means.
fn meaning(scripts: &LockScripts, request: Request<'_>, reply: Reply) -> Said {
    match reply.map(|answer| scripts.acquired(request, answer.value)) {
        Ok(Ok(Acquired::Granted { token, .. })) => Said::Granted(token),
        Ok(Ok(Acquired::Taken(taken))) => Said::Taken(taken),
        Ok(Ok(Acquired::Broken)) => Said::Broken,
        Ok(Err(strange)) => Said::Failed(Failed::sent(Failure::Other(
            strange.error.to_string().into(),
        ))),
        Err(failed) => Said::Failed(failed),
    }
}
