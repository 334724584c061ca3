//! How one owner comes to a lock of a quorum.
//!
//! | its place | it asks | and then |
//! |---|---|---|
//! | outside | all servers at once; where the name was taken lately, the line's server first | it has the lock; or it is taken: it asks the line's server alone, and is in line |
//! | in line | the line's server, as it would a single one, and hears of its grant there | first |
//! | first: the line's server has let it in | the other servers at once, and all when it asks again | it has the lock; or others still have it at a majority: first, and it asks again after a pause |
//!
//! What doesn't come to a majority with the line's server is given back at once. An owner of which a release has no
//! answer gives up all it has, and asks for nothing any more: the release might arrive late, and take what it was
//! granted since. Another owner begins anew. So what an owner is told to have at a server it has.

use std::{sync::Arc, time::Duration};

use super::leases::{Held, Leases};
use super::{node::SILENCE, shared::Quorum, votes::Vote};
use crate::base::{BootInstant, Deadline, Error, Token};
use crate::engine::redis::{failure::Failure, waiter::RedisWait};
use crate::engine::{Answer, Failed, Gone, Grant, Pace, Request, Wait};

pub(super) struct QuorumWait {
    quorum: Arc<Quorum>,
    /// The server in whose queue it stands, or will, and how it waits there.
    line: usize,
    wait: RedisWait,
    place: Place,
    /// What the line's server has granted, as long as nothing was asked since.
    at_line: Option<Grant>,
    /// For how many questions the owner has been first.
    questions: u32,
    /// Whether a server that fails may have something of it.
    may_have_left: bool,
    /// Whether another owner has to ask.
    is_spent: bool,
}

enum Place {
    Outside,
    InLine,
    /// With that token.
    First(u64),
}

/// The first pause of an owner that the line's server has let in, and another hasn't. A release reaches the others
/// before the line's: it is on its way, or another gives back in a round trip what it got there.
const SHORTEST: Duration = Duration::from_micros(100);

impl Wait for QuorumWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        mut pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let quorum = &*self.quorum.clone();
        let held = Held {
            quorum,
            request,
            deadline,
        };
        if self.is_spent {
            return Ok(self.spent(held));
        }
        if matches!(self.place, Place::Outside) && self.line != quorum.line() {
            self.stand_at(quorum.line());
        }
        let is_line_first = match self.place {
            Place::Outside => quorum.contended.has(request.claim),
            Place::InLine => true,
            Place::First(_) => false,
        };
        if is_line_first && let Some(answer) = self.ask_line(held, pace.as_deref_mut())? {
            return Ok(answer);
        }
        self.ask_all(held, pace)
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        if matches!(self.place, Place::First(_)) {
            self.questions += 1;
            let short = SHORTEST * 2u32.pow(self.questions.min(16));
            let pause = pace.next_pause().min(request.ttl / 3).min(short);
            pace.until.sleep(pause);
        } else if let Some(grant) = self.wait.wait(request, pace)
            && self.quorum.nodes[self.line].votes()
        {
            self.is_first(grant.token, Some(grant));
        }
        None
    }
}

impl QuorumWait {
    pub(super) fn new(quorum: Arc<Quorum>) -> Self {
        let line = quorum.line();
        QuorumWait {
            wait: RedisWait::new(quorum.deps_at(line), false),
            quorum,
            line,
            place: Place::Outside,
            at_line: None,
            questions: 0,
            may_have_left: false,
            is_spent: false,
        }
    }

    fn stand_at(&mut self, line: usize) {
        self.wait = RedisWait::new(self.quorum.deps_at(line), false);
        (self.line, self.place) = (line, Place::Outside);
        (self.at_line, self.questions) = (None, 0);
    }

    /// The line's server has granted it, and needn't be asked again where that is known by a grant.
    fn is_first(&mut self, token: Token, at_line: Option<Grant>) {
        (self.place, self.at_line) = (Place::First(token.number), at_line);
    }

    /// Asks the line's server alone, or the next where an owner in line finds that it fails. Without an answer all have
    /// to be asked: it has let the owner in; or it fails, and the owner wasn't in line.
    fn ask_line(
        &mut self,
        held: Held<'_>,
        mut pace: Option<&mut Pace<'_>>,
    ) -> Result<Option<Answer>, Failed> {
        let (request, deadline) = (held.request, held.deadline);
        let within = deadline.within((request.ttl / 4).max(SILENCE));
        match self.wait.ask(request, pace.as_deref_mut(), &within) {
            Ok(Answer::Granted(grant)) => {
                if matches!(self.place, Place::Outside) {
                    // It was free.
                    self.quorum.contended.remove(request.claim);
                }
                self.is_first(grant.token, Some(grant));
            }
            Ok(Answer::Broken) => return Ok(Some(self.spent(held))),
            Ok(Answer::Taken { is_queued, holder }) => {
                self.place = Place::InLine;
                return Ok(Some(self.taken_now(is_queued, holder)));
            }
            Err(failed) => {
                let was_in_line = matches!(self.place, Place::InLine);
                self.may_have_left |= failed.sent || was_in_line;
                let mut nodes = self.quorum.nodes.iter().enumerate();
                let next = nodes.find(|(at, node)| *at != self.line && node.is_up());
                // It may only have had too little time.
                let Some((next, _)) = next.filter(|_| !deadline.is_over()) else {
                    return Err(failed);
                };
                if let Error::Unavailable { .. } = failed.error {
                    let failure = Failure::Closed(failed.error.to_string().into());
                    self.quorum.nodes[self.line].heard(Some(&failure));
                }
                self.stand_at(next);
                if was_in_line {
                    return self.ask_line(held, pace);
                }
            }
        }
        Ok(None)
    }

    fn ask_all(&mut self, held: Held<'_>, pace: Option<&mut Pace<'_>>) -> Result<Answer, Failed> {
        let (mut poll, since) = self.poll(held);
        Self::clear_up(held, &mut poll);
        if poll.no().any(|gone| gone == Gone::Broken) {
            return Ok(self.spent(held));
        }
        if poll.is_granted() {
            return self.granted(held, &poll, since);
        }
        if !poll.is_majority(poll.answered()) {
            self.give_back(held, |at| poll.may_have(at));
            self.stand_at(self.quorum.line());
            let error = held.quorum.too_few(Some(held.request.key()), poll);
            return Err(Failed::sent(error));
        }
        Ok(self.taken(held, pace, &poll))
    }

    /// Asks all servers, but the line's where that has just let the owner in. Says since when the owner has what it is
    /// granted.
    fn poll(&mut self, held: Held<'_>) -> (Leases, BootInstant) {
        let mut poll: Leases = held.quorum.no_votes();
        // Read before sending: no server's lease starts earlier than this, but that of the line's server may.
        let mut since = held.quorum.deps.clock.now();
        if let Some(grant) = self.at_line.take() {
            since = grant.since;
            poll.said[self.line] = Some(Vote::Yes(Some(grant.token)));
        }
        let tokens_from = match self.place {
            Place::First(token) => token,
            Place::Outside | Place::InLine => held.quorum.tokens.now(),
        };
        held.ask(&mut poll, Some(tokens_from), Leases::is_enough);
        (poll, since)
    }

    /// Asks the servers that refuse the lock again, if a majority with them would say that the holder before never
    /// released it. Its release may be on its way to them, and another server may tell of an earlier holder.
    fn clear_up(held: Held<'_>, poll: &mut Leases) {
        /// A release is there by then, unless it was lost.
        const LONGEST: Duration = Duration::from_millis(100);
        let until = &held.deadline.within(LONGEST.min(held.request.ttl / 4));
        let held = Held {
            deadline: until,
            ..held
        };
        let tokens_from = poll.tokens().map(|token| token.number).min();
        let mut pause = SHORTEST;
        while poll.depends_on_refusals() && !until.is_over() {
            until.sleep(pause);
            pause *= 2;
            poll.forget(|vote| matches!(vote, Some(Vote::No(_))));
            held.ask(poll, tokens_from, |_| false);
        }
    }

    /// A majority has granted it. Its token is the largest, which a majority must have.
    fn granted(
        &mut self,
        held: Held<'_>,
        poll: &Leases,
        since: BootInstant,
    ) -> Result<Answer, Failed> {
        let token = poll.token();
        held.quorum.tokens.granted(token);
        let have = poll.tokens().filter(|its| *its == token).count();
        if !poll.is_majority(have) {
            let raised = held.raise(token);
            if raised.no().any(|gone| gone == Gone::Broken) {
                return Ok(self.spent(held));
            }
            if !raised.is_yes() {
                // It has it, and asks again.
                let error = held.quorum.too_few(Some(held.request.key()), raised);
                return Err(Failed::sent(error));
            }
        }
        Ok(Answer::Granted(Grant {
            token,
            value: None,
            since,
        }))
    }

    /// Others have it at so many servers that no majority is left. The owner gives back what it has. But one that waits
    /// keeps what the line's server has granted it. If another has it there, too, an owner that waits enters the line.
    fn taken(&mut self, held: Held<'_>, pace: Option<&mut Pace<'_>>, poll: &Leases) -> Answer {
        let (line, was_first) = (self.line, matches!(self.place, Place::First(_)));
        let is_line = pace.is_some() && poll.line() == Some(line);
        let granted = poll.token_of(line).filter(|_| is_line);
        held.quorum.contended.insert(held.request.claim);
        self.give_back(held, |at| match at == line {
            true => granted.is_none() && (was_first || poll.may_have(at)),
            false => poll.may_have(at),
        });
        if let Some(token) = granted {
            self.is_first(token, None);
            return self.taken_now(true, None);
        }
        self.stand_at(held.quorum.line());
        if pace.is_some()
            && !self.is_spent
            && let Ok(Some(answer)) = self.ask_line(held, pace)
        {
            return answer;
        }
        let is_first = matches!(self.place, Place::First(_));
        self.taken_now(is_first, None)
    }

    /// An owner that may have something is told to be in the queue, so that its caller leaves everywhere when it gives
    /// up.
    fn taken_now(&self, is_queued: bool, holder: Option<String>) -> Answer {
        Answer::Taken {
            is_queued: is_queued || self.may_have_left || self.is_spent,
            holder,
        }
    }

    /// Gives back what the owner may have at these servers.
    fn give_back(&mut self, held: Held<'_>, may_have: impl Fn(usize) -> bool) {
        self.is_spent |= !held.give_back(may_have);
    }

    /// The owner was broken. It gives back the rest.
    fn spent(&mut self, held: Held<'_>) -> Answer {
        self.is_spent = true;
        held.give_back(|_| true);
        Answer::Broken
    }
}

/// What servers say to an owner that asks for a lock.
impl Leases {
    /// Whether a majority has granted it, and with it the line's server.
    fn is_granted(&self) -> bool {
        let line = self.line().and_then(|line| self.token_of(line));
        self.is_yes() && line.is_some()
    }

    /// Where the lock is taken, all that was granted has to be known.
    fn is_enough(&self) -> bool {
        let may_be_line = |vote: &&_| !matches!(vote, Some(Vote::Failed(_)));
        let line = self.said.iter().find(may_be_line);
        let is_line_in = matches!(line, Some(Some(Vote::Yes(_))));
        // Whether the holder before has left it is known for certain when all have answered.
        let is_clear = || self.tokens().all(|token| !token.abandoned);
        self.is_complete() || is_line_in && self.is_yes() && is_clear()
    }

    /// The one token of all that granted it: no smaller than any. The holder before has left the lock if it may have
    /// left it at a majority. Less than that had it only in passing, or have missed its release.
    fn token(&self) -> Token {
        let largest = self.tokens().map(|token| token.number).max();
        let (left, silent) = (self.left(), self.said.len() - self.yes().count());
        let number = largest.unwrap_or(0);
        Token::of_class(number, left > 0 && self.is_majority(left + silent))
    }

    fn tokens(&self) -> impl Iterator<Item = Token> {
        self.yes().filter_map(|token| *token)
    }

    /// At how many servers the holder before is known to have left the lock.
    fn left(&self) -> usize {
        self.tokens().filter(|token| token.abandoned).count()
    }

    /// Whether it is granted, and depends on the servers that refuse it whether the holder before has left the lock.
    fn depends_on_refusals(&self) -> bool {
        let is_sure = self.no().next().is_none() || self.is_majority(self.left());
        self.is_granted() && self.token().abandoned && !is_sure
    }

    /// The first that has answered.
    fn line(&self) -> Option<usize> {
        let has_answered = |vote: &_| matches!(vote, Some(Vote::Yes(_) | Vote::No(_)));
        self.said.iter().position(has_answered)
    }

    fn token_of(&self, server: usize) -> Option<Token> {
        match self.said[server] {
            Some(Vote::Yes(token)) => token,
            _ => None,
        }
    }

    /// Whether the owner has the lock there, or may have it.
    fn may_have(&self, server: usize) -> bool {
        match &self.said[server] {
            Some(Vote::No(_)) => false,
            Some(Vote::Failed(failed)) => failed.sent,
            _ => true,
        }
    }
}
