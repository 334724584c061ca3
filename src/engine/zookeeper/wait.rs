//! How one owner comes to a lock: it makes a node in the line of each of its names, and waits until nobody stands before it.
//!
//! | the owner | has | then |
//! |---|---|---|
//! | has asked for nothing | no node | with a pace: makes its nodes, whoever is there. Without one: looks, and makes them if nobody is in its way |
//! | asks without an answer | perhaps nodes | looks for them by its uuid, before anything else. Those of another session are deleted: they end with it |
//! | is in line | a node for each name | lists the names. Its nodes are gone: it begins anew, or was broken. It stands behind another: watches that one. Else it is let in |
//! | waits | the same, and a watch | the watched node is gone or has changed, the connection or the session was lost, a kept place is over: lists again |
//! | is let in | the same | proves the session, watches its own nodes, says in `held` that it was let in |
//! | leaves | the same | deletes its nodes, in one go with its `held` |
//!
//! `held` is made together with the nodes, if nobody has it; this is the way of a free lock. It belongs to whoever stands
//! first: an owner that finds itself behind another gives it to that one, or deletes it. So whoever is first and
//! finds the `held` of an owner that isn't in line any more knows that this one never released the lock.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Op, Told, Watcher};
use super::entering::{Entered, Own};
use super::kept;
use super::line::Line;
use super::locks::{Locks, get};
use super::looks::LeadersClock;
use super::nodes;
use super::owners::Card;
use super::question::{Question, Seen};
use super::release;
use super::replies::{Replies, Trouble};
use super::sweep::sweep_if_due;
use crate::base::clock::Deadline;
use crate::engine::line::Standing;
use crate::engine::{Answer, Grant, Pace, Request, Unanswered, Wait};

pub(super) struct ZooKeeperWait {
    pub(super) locks: Arc<Locks>,
    place: Place,
    watch: Option<Watch>,
    leaders_clock: Option<LeadersClock>,
    /// A place ahead is kept for so long.
    kept_for: Option<Duration>,
}

/// Where the owner stands.
enum Place {
    Nowhere,
    /// A question has no answer.
    Unclear,
    InLine(Own),
}

/// What the owner waits for.
struct Watch {
    path: String,
    watcher: Watcher,
}

/// What comes of one look.
enum Next {
    Answer(Answer),
    /// Something has changed meanwhile.
    Again,
}

/// So often a question looks again, because others come and go. Then its caller's pace counts.
const MOST_LOOKS: u32 = 64;

/// A waiter that hears of nothing looks so often all the same.
const LOOK: Duration = Duration::from_secs(10);

impl Wait for ZooKeeperWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        let deadline = self.locks.gives_up_by(deadline);
        let answer = self.ask_again_and_again(request, pace.is_some(), &deadline);
        answer.map_err(|trouble| self.locks.unanswered(request, trouble))
    }

    fn wait(&mut self, _request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let pause = match &self.watch {
            Some(_) if !pace.counted => LOOK,
            _ => pace.next_pause(),
        };
        let pause = pause.min(self.kept_for.take().unwrap_or(pause));
        match &self.watch {
            Some(watch) => {
                if watch.watcher.wait(&pace.until.within(pause)) != Told::Nothing {
                    // It tells nothing more. If the next question has no answer, there is a pause behind it.
                    self.watch = None;
                }
            }
            None => pace.until.sleep(pause),
        }
        None
    }
}

impl ZooKeeperWait {
    pub(super) fn new(locks: Arc<Locks>) -> Self {
        ZooKeeperWait {
            locks,
            place: Place::Nowhere,
            watch: None,
            leaders_clock: None,
            kept_for: None,
        }
    }

    fn ask_again_and_again(
        &mut self,
        request: Request<'_>,
        waits: bool,
        deadline: &Deadline,
    ) -> Result<Answer, Trouble> {
        let question = Question {
            request,
            session: self.locks.session(deadline)?,
            names: self.locks.names(request),
            deadline,
            waits,
        };
        if let Place::InLine(own) = &self.place
            && own.session != question.session.id()
        {
            (self.place, self.watch) = (Place::Unclear, None);
        }
        for _ in 0..MOST_LOOKS {
            if let Next::Answer(answer) = self.step(&question)? {
                return Ok(answer);
            }
        }
        Ok(taken(waits, None))
    }

    fn step(&mut self, question: &Question<'_>) -> Result<Next, Trouble> {
        match std::mem::replace(&mut self.place, Place::Unclear) {
            Place::Nowhere => {
                self.place = Place::Nowhere;
                if question.waits {
                    return self.enter(question);
                }
                let seen = question.look()?;
                self.enter_if_let_in(question, &seen)
            }
            Place::Unclear => self.find(question),
            Place::InLine(own) => {
                self.place = Place::InLine(own.clone());
                let requests: Vec<_> = question.listing().collect();
                let seen = question.listed(&mut question.call(&requests)?)?;
                self.decide(question, own, &seen)
            }
        }
    }

    /// Makes the nodes.
    fn enter(&mut self, question: &Question<'_>) -> Result<Next, Trouble> {
        self.place = Place::Unclear;
        let entered = question.enter(&self.locks);
        if self.locks.owners.get(question.request.owner).is_none() {
            self.place = Place::Nowhere;
        }
        match entered? {
            Entered::InLine(own, seen) => {
                self.leaders_clock = own.leaders_clock.or(self.leaders_clock);
                self.place = Place::InLine(own.clone());
                self.decide(question, own, &seen)
            }
            Entered::Held => Ok(Next::Again),
            Entered::NoNames => {
                self.locks
                    .make(&question.session, &question.names, question.deadline)?;
                Ok(Next::Again)
            }
        }
    }

    /// One that doesn't wait makes nodes only where it is let in, as far as it can see.
    fn enter_if_let_in(&mut self, question: &Question<'_>, seen: &Seen) -> Result<Next, Trouble> {
        let mode = question.request.claim.mode;
        let blocked = seen.lines.iter().position(|line| !line.lets_in(mode));
        let Some(at) = blocked else {
            return self.enter(question);
        };
        let name = &question.names[at];
        match kept::tidy(
            &self.locks,
            question,
            name,
            &seen.lines[at],
            &mut self.leaders_clock,
        )? {
            kept::Kept::SomeAreOver => Ok(Next::Again),
            _ => Ok(Next::Answer(taken(false, None))),
        }
    }

    /// Finds what a question without an answer has made.
    fn find(&mut self, question: &Question<'_>) -> Result<Next, Trouble> {
        let seen = question.look()?;
        if let Some(own) = question.own_nodes(&seen.lines)? {
            let paths = own.nodes.iter().map(|node| node.path.clone()).collect();
            self.locks
                .owners
                .asks(question.request.owner, question.session.id());
            self.locks.owners.has(question.request.owner, paths);
            self.place = Place::InLine(own.clone());
            return self.decide(question, own, &seen);
        }
        self.begin_anew(question, &seen.lines)
    }

    /// Some of its nodes are gone, or were never made.
    fn begin_anew(&mut self, question: &Question<'_>, lines: &[Line]) -> Result<Next, Trouble> {
        let (locks, owner) = (&self.locks, question.request.owner);
        let is_broken = lines.iter().any(|line| line.is_broken(question.uuid()));
        locks.owners.asks(owner, question.session.id());
        release::leave(locks, question.request, question.deadline)?;
        (self.place, self.watch) = (Place::Nowhere, None);
        if !is_broken {
            return Ok(Next::Again);
        }
        let paths = question.names.iter();
        let paths = paths.map(|name| name.child(&nodes::broken(question.uuid())));
        locks.leftovers.leave(locks, paths.collect());
        Ok(Next::Answer(Answer::Broken))
    }

    /// What a look at all names means for an owner in line.
    fn decide(&mut self, question: &Question<'_>, own: Own, seen: &Seen) -> Result<Next, Trouble> {
        let nodes = seen.lines.iter().zip(&own.nodes);
        let places: Option<Vec<_>> = nodes.map(|(line, node)| line.place(&node.path)).collect();
        let Some(places) = places else {
            return self.begin_anew(question, &seen.lines);
        };
        let standings = seen.lines.iter().zip(&places);
        let mut standings = standings.map(|(line, place)| line.standing(*place));
        let blocked = standings.position(|standing| standing != Standing::Holds);
        let Some(at) = blocked else {
            let granted = own.grant(&self.locks, question, seen)?;
            let Some((own, grant)) = granted else {
                return Ok(Next::Again);
            };
            let namespace = question.request.key().namespace();
            sweep_if_due(&self.locks, namespace, &question.names[0]);
            (self.place, self.watch) = (Place::InLine(own), None);
            return Ok(Next::Answer(Answer::Granted(grant)));
        };
        let (name, line) = (&question.names[at], &seen.lines[at]);
        let kept = kept::tidy(&self.locks, question, name, line, &mut self.leaders_clock)?;
        self.kept_for = match kept {
            kept::Kept::SomeAreOver => return Ok(Next::Again),
            kept::Kept::For(left) => Some(left),
            kept::Kept::None => None,
        };
        if !question.waits {
            release::leave(&self.locks, question.request, question.deadline)?;
            (self.place, self.watch) = (Place::Nowhere, None);
            return Ok(Next::Answer(taken(false, None)));
        }
        self.watch(question, own, seen, (at, places[at]))
    }

    /// Watches what has to go before the owner can be let in.
    fn watch(
        &mut self,
        question: &Question<'_>,
        own: Own,
        seen: &Seen,
        (at, place): (usize, usize),
    ) -> Result<Next, Trouble> {
        let (name, line) = (&question.names[at], &seen.lines[at]);
        let ahead = match line.standing(place) {
            Standing::Behind(ahead) => Some(&line.members[ahead]),
            Standing::BehindSome | Standing::Holds => None,
        };
        let path = ahead.map_or_else(|| name.path.clone(), |member| name.child(&member.node));
        let is_watched = |watch: &Watch| {
            // Of a name's children each change is one to hear of anew.
            ahead.is_some() && watch.path == path && watch.is_silent()
        };
        if self.watch.as_ref().is_some_and(is_watched) && !own.is_marked() {
            return Ok(Next::Answer(taken(true, None)));
        }
        let (watcher, mut requests) = (Watcher::new(), own.unmark(question, seen));
        let unmarking = requests.len();
        requests.push(watching(&path, ahead.is_some(), watcher.clone()));
        requests.push(get(name.child(&line.members[0].node)));
        let mut replies = question.call(&requests)?;
        self.place = Place::InLine(own.unmarked());
        for _ in 0..unmarking {
            // Whoever is first may have been quicker.
            let _ = replies.next()?;
        }
        let is_as_seen = match ahead {
            Some(_) => replies.data()?.is_some(),
            None => replies.line()? == *line,
        };
        if !is_as_seen {
            return Ok(Next::Again);
        }
        self.watch = Some(Watch { path, watcher });
        Ok(Next::Answer(taken(true, holder(&mut replies)?)))
    }
}

impl Watch {
    fn is_silent(&self) -> bool {
        self.watcher.told() == Told::Nothing
    }
}

fn watching(path: &str, is_member: bool, watcher: Watcher) -> Op {
    let (path, watch) = (path.to_owned(), Some(watcher));
    if is_member {
        Op::Get { path, watch }
    } else {
        Op::Children { path, watch }
    }
}

/// Who stands first.
fn holder(replies: &mut Replies) -> Result<Option<String>, Trouble> {
    let first = replies.data()?;
    let holder = first.map(|(card, _)| Card::of(&card).owner.holder().to_owned());
    Ok(holder.filter(|holder| !holder.is_empty()))
}

fn taken(is_queued: bool, holder: Option<String>) -> Answer {
    Answer::Taken { is_queued, holder }
}
