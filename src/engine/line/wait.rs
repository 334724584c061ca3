//! How one owner comes to a lock, and waits for it.
//!
//! It has an entry in each of its lines, and watches those in its way, as few as will do. When one of them changes it
//! looks, and so finds whether it is at the front. It looks at no more than what decides that, and at nothing while
//! nothing changes.
//!
//! | state | a question | it is in line afterwards |
//! |---|---|---|
//! | out | enters, and has the lock if nobody is in its way | yes, if it waits or has the lock |
//! | in line, and nothing has changed | keeps its entries alive when it is time | yes, or they are gone |
//! | in line | looks, and is let in if nobody is in its way | yes, or it was broken, or it has lost its entries |
//! | unclear: a question has no answer | looks whether it is in line | as before; without entries it is out |
//! | leaving: to give up its entries has no answer | gives them up; another owner has to ask | no |
//!
//! | what is seen | then it |
//! |---|---|
//! | it was broken | gives up all; another owner has to ask |
//! | it has its entries, and nobody is in its way | is let in |
//! | it has its entries, and somebody is in its way | watches that one; without waiting it leaves |
//! | remains: a lease or session has ended, or an entry was deleted | gives up the rest, and enters anew, at the end |
//! | nothing | is out |
//!
//! A waiter for permits watches the nearest entries ahead that leave too few for it: one of them has to go before it is
//! its turn.
//!
//! Of several names, its entries were made at once. So whoever is ahead of it in one is ahead of it wherever they
//! meet, and nobody waits for itself. It watches one name at a time.

use std::{sync::Arc, time::Duration};

use super::store::{Blocker, LineStore, LineWatch, Presence, Snapshot, Step, When, Why};
use crate::base::{Backoff, Deadline, Error, Result};
use crate::engine::{Answer, Failed, Grant, Pace, Request, Wait};

pub(crate) struct LineWait<S: LineStore> {
    store: Arc<S>,
    state: State,
    /// In whose place it waits, which counts as long as nothing has changed.
    blocker: Option<Blocker>,
    watch: Option<S::Watch>,
    /// Whether something may have happened before what is in the way was watched.
    has_missed: bool,
    /// Whether something has happened since the last look, as far as it knows.
    has_changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Out,
    InLine,
    Unclear,
    /// It gives up its entries, and a late copy of that may take what it gets from now on: so it gets nothing any more.
    Leaving,
}

/// What is to be done about a step.
enum Next {
    Answer(Answer),
    Ask,
}

/// How a question is asked.
struct Asking {
    waits: bool,
    /// When its caller gives up waiting.
    until: Deadline,
    /// Whether its caller counts attempts, and makes one after each pause, whatever happens meanwhile.
    is_counted: bool,
    /// Without an entry: nobody who was in line at that revision kept it from sharing the name.
    fits_at: Option<u64>,
    /// How often it has looked.
    looks: u32,
}

/// After so many looks that were outdated at once, one that wants to share a name without waiting stands in line for
/// a moment.
const LOOKS: u32 = 3;

/// After this many looks, its caller's pace counts: others come and go.
const MOST_LOOKS: u32 = 64;

impl<S: LineStore> Wait for LineWait<S> {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let asking = Asking {
            waits: pace.is_some(),
            until: pace.as_ref().map_or(deadline, |pace| pace.until).clone(),
            is_counted: pace.is_some_and(|pace| pace.counted),
            fits_at: None,
            looks: 0,
        };
        let asked = self.ask_until_clear(request, asking, deadline);
        asked.map_err(|Failed { error, sent }| {
            let is_clear = !sent && !self.store.has_inflight(request);
            // It asks again after a pause, whatever the watch would tell.
            self.watch = None;
            match self.state {
                State::Leaving => {}
                // It has only looked.
                State::InLine if !sent => {}
                State::Out if is_clear => self.store.retire(request, deadline),
                _ => self.state = State::Unclear,
            }
            // It may have an entry also where its last question didn't go out.
            let sent = sent || self.state != State::Out;
            Failed { error, sent }
        })
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let rest = match self.state {
            State::InLine => self.store.rest(request),
            State::Out | State::Unclear | State::Leaving => request.ttl / 3,
        };
        self.has_changed = true;
        let is_watched = !pace.counted && !self.has_missed;
        let Some(watch) = self.watch.as_mut().filter(|_| is_watched) else {
            let pause = pace.next_pause().min(rest);
            pace.until.sleep(pause);
            return None;
        };
        let until = pace.until.within(rest);
        match watch.wait(&until) {
            Ok(has_changed) => self.has_changed = has_changed,
            Err(error) => {
                self.watch = None;
                // What it should have told of is only read: to go in is a commit, also where somebody is ahead.
                self.has_missed = true;
                log::debug!("can't watch the lock, asking again: {error}");
                until.sleep(pace.next_pause());
            }
        }
        None
    }
}

impl<S: LineStore> LineWait<S> {
    pub(crate) fn new(store: Arc<S>) -> Self {
        LineWait {
            store,
            state: State::Out,
            blocker: None,
            watch: None,
            has_missed: false,
            has_changed: true,
        }
    }

    fn ask_until_clear(
        &mut self,
        request: Request<'_>,
        mut asking: Asking,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        if self.state == State::Leaving {
            self.leave(request, deadline)?;
            return Ok(Answer::Broken);
        }
        while asking.looks < MOST_LOOKS {
            if let Next::Answer(answer) = self.ask_once(request, &mut asking, deadline)? {
                return Ok(answer);
            }
            if deadline.is_over() {
                let (name, endpoint) = (Some(request.key().name()), self.store.endpoint());
                let error = Error::unavailable(name, endpoint, "there was no time to ask again");
                return Err(Failed::unsent(error));
            }
            asking.looks += 1;
        }
        if !asking.waits && self.state != State::Out {
            self.leave(request, deadline)?;
        }
        Ok(taken(asking.waits, None))
    }

    fn ask_once(
        &mut self,
        request: Request<'_>,
        asking: &mut Asking,
        deadline: &Deadline,
    ) -> Result<Next, Failed> {
        let enters = asking.waits || asking.looks > LOOKS;
        let has_missed = std::mem::take(&mut self.has_missed);
        let step = match self.state {
            State::Out => {
                let when = match asking.fits_at {
                    _ if enters => When::Always,
                    Some(revision) => When::AsSeen(revision),
                    None => When::IfFree,
                };
                self.store.enter(request, when, deadline)?
            }
            State::InLine => {
                let is_quiet = asking.waits && !self.has_changed && self.blocker.is_some();
                let why = match has_missed {
                    true => Why::Missed,
                    false if is_quiet => Why::Quiet,
                    false => Why::News,
                };
                self.store.look(request, why, deadline)?
            }
            State::Unclear | State::Leaving => self.store.look(request, Why::Unclear, deadline)?,
        };
        self.take(request, step, asking, deadline)
    }

    fn take(
        &mut self,
        request: Request<'_>,
        step: Step,
        asking: &mut Asking,
        deadline: &Deadline,
    ) -> Result<Next, Failed> {
        match step {
            Step::In(grant) => {
                self.state = State::InLine;
                (self.blocker, self.watch) = (None, None);
                Ok(Next::Answer(Answer::Granted(grant)))
            }
            Step::Seen(seen) => self.saw(request, &seen, asking, deadline),
            Step::Same => Ok(Next::Answer(taken(true, None))),
            Step::Lost => {
                self.is_out();
                Ok(Next::Ask)
            }
        }
    }

    /// Decides by what was seen.
    fn saw(
        &mut self,
        request: Request<'_>,
        seen: &Snapshot,
        asking: &mut Asking,
        deadline: &Deadline,
    ) -> Result<Next, Failed> {
        if seen.is_broken {
            self.leave(request, deadline)?;
            return Ok(Next::Answer(Answer::Broken));
        }
        match (seen.own, self.state) {
            (Presence::Entries, _) => {
                self.state = State::InLine;
                self.saw_itself(request, seen, asking, deadline)
            }
            (Presence::Remains, _) => {
                self.leave(request, deadline)?;
                Ok(Next::Ask)
            }
            (Presence::Nothing, State::Out) => {
                if !request.claim.is_exclusive() && seen.lets_in(request) {
                    asking.fits_at = Some(seen.revision);
                    return Ok(Next::Ask);
                }
                self.store.retire(request, deadline);
                Ok(Next::Answer(taken(false, None)))
            }
            (Presence::Nothing, State::InLine) => {
                self.store.discard(request, deadline);
                self.is_out();
                Ok(Next::Ask)
            }
            (Presence::Nothing, State::Unclear | State::Leaving) => {
                self.is_out();
                Ok(Next::Ask)
            }
        }
    }

    /// It has its entries.
    fn saw_itself(
        &mut self,
        request: Request<'_>,
        seen: &Snapshot,
        asking: &mut Asking,
        deadline: &Deadline,
    ) -> Result<Next, Failed> {
        self.blocker = seen.blocker(request);
        self.has_changed = false;
        let Some(blocker) = self.blocker.clone() else {
            return match self.store.admit(request, seen, deadline)? {
                // It has entries, and is in nobody's way: what has changed is seen by the next question.
                Step::Seen(_) | Step::Same => {
                    self.has_missed = true;
                    Ok(Next::Ask)
                }
                step => self.take(request, step, asking, deadline),
            };
        };
        if !asking.waits {
            self.leave(request, deadline)?;
            return Ok(Next::Answer(taken(false, None)));
        }
        if asking.is_counted {
            return Ok(Next::Answer(taken(true, seen.holder(request))));
        }
        // Its entries have to be kept alive meanwhile.
        let until = asking.until.within(self.store.rest(request));
        self.watch(request, &blocker, seen, &until)
    }

    /// Watches what is in the way, if that isn't watched already.
    fn watch(
        &mut self,
        request: Request<'_>,
        blocker: &Blocker,
        seen: &Snapshot,
        until: &Deadline,
    ) -> Result<Next, Failed> {
        let mut holder = seen.holder(request);
        let goes_on = |watch: &mut S::Watch| watch.goes_on_for(blocker, seen);
        if !self.watch.as_mut().is_some_and(goes_on) {
            self.watch = None;
            match self.store.watch(request, blocker, seen, until) {
                Ok(watched) => {
                    self.watch = Some(watched.watch);
                    if !watched.is_current {
                        self.has_missed = true;
                        return Ok(Next::Ask);
                    }
                    holder = watched.holder.or(holder);
                }
                Err(error) => {
                    log::debug!("can't watch the lock, asking again: {error}");
                }
            }
        }
        Ok(Next::Answer(taken(true, holder)))
    }

    /// Gives up all entries.
    fn leave(&mut self, request: Request<'_>, deadline: &Deadline) -> Result<(), Failed> {
        self.state = State::Leaving;
        self.store.leave(request, deadline)?;
        self.store.retire(request, deadline);
        self.is_out();
        Ok(())
    }

    fn is_out(&mut self) {
        (self.state, self.blocker, self.watch) = (State::Out, None, None);
    }
}

fn taken(is_queued: bool, holder: Option<String>) -> Answer {
    Answer::Taken { is_queued, holder }
}

/// The pauses before a request without an answer is sent again. All callers ask all hosts while these have no leader.
const PAUSES: Backoff = Backoff {
    base: Duration::from_millis(10),
    cap: Duration::from_millis(160),
    jitter: 0.5,
};

/// Asks until there is an answer, for what is harmless to repeat. Says also whether a question without an answer may
/// have been carried out before.
pub(crate) fn until_answered<T>(
    deadline: &Deadline,
    mut ask: impl FnMut() -> Result<T, Failed>,
) -> Result<(T, bool)> {
    let (mut was_sent, mut pauses) = (false, PAUSES.waits());
    loop {
        let Failed { error, sent } = match ask() {
            Ok(answer) => return Ok((answer, was_sent)),
            Err(failed) => failed,
        };
        was_sent |= sent;
        if error.may_pass() {
            deadline.sleep(pauses.next().unwrap_or(PAUSES.cap));
        }
        if !error.may_pass() || deadline.is_over() {
            return Err(error);
        }
    }
}
