//! How one owner waits for a lock in etcd.
//!
//! It has a place in the line, under a lease that it keeps alive, and watches the keys of those in its way, as few as will do. When one
//! of them changes it asks, and so finds whether it is at the front. It reads no more of the line than what decides that, and nothing
//! while nothing changes.
//!
//! | state | a question | it is in line afterwards |
//! |---|---|---|
//! | out | goes in if nobody is in line, else stands in line; without waiting it stays out | yes, if it waits |
//! | in line, and nothing has changed | once a third of its lease is over it keeps that alive | yes, or its lease is gone |
//! | in line | goes in if nobody is ahead any more, and sees who is ahead otherwise | yes, or it was broken, or it has lost its place |
//! | in line, and something has happened before its watch began | looks | as before |
//! | unclear: a question has no answer | looks whether it is in line | as before; without a place it is out |
//! | leaving: to give up its places has no answer | gives them up; another owner has to ask | no |
//!
//! | what is seen | then it |
//! |---|---|
//! | it was broken | gives up all its places; another owner has to ask |
//! | it has its places, and nobody is ahead | has the lock: alone after one more transaction, which says so; with others at once |
//! | it has its places, and somebody is ahead | waits: it watches the key of that one. Waiting for permits, it watches the nearest of those ahead that leave too few for it: one of them has to go before it is its turn. Without waiting it leaves |
//! | it has lost a place: its lease ran out, or somebody deleted the key | gives up the others, and is out: it enters anew, at the end |
//!
//! Of several names, its places were made by one transaction. So whoever is ahead of it in one is ahead of it wherever they
//! meet, and nobody waits for itself. It watches one name at a time.
//!
//! To keep the lease alive proves nothing by itself: see `proof`. The next answer of the same member proves it, in the same term, and that
//! is the one that lets it in. Otherwise the lease is proved before the lock counts.

use std::sync::Arc;
use std::time::Duration;

use super::blocker::Blocker;
use super::client::failure::Failure;
use super::client::proof::Seen;
use super::client::watch::Watch;
use super::commands::{Commands, Entered, Entry};
use super::owners::Own;
use crate::base::backoff::shortened;
use crate::base::clock::{BootInstant, Deadline};
use crate::engine::line::token_of;
use crate::engine::{Answer, Grant, Pace, Request, Unanswered, Wait};

mod saw;

pub(super) struct EtcdWait {
    commands: Arc<Commands>,
    state: State,
    /// Without a place: nobody who was in line at that revision kept it from sharing the name.
    fits_at: Option<u64>,
    /// Since when its lease was proved to last, and when that is to be done again.
    proved: BootInstant,
    beat: BootInstant,
    /// What stood in the way when it was last seen.
    blocker: Option<Blocker>,
    watching: Option<(Blocker, Watch)>,
    /// Whether something may have happened after that was seen, and before it was watched.
    has_missed: bool,
    /// Whether something has happened since then, as far as is known.
    has_changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Out,
    /// Since that revision.
    InLine(u64),
    Unclear,
    /// It gives up its places, and a late copy of that may take what it gets from now on: so it gets nothing any more.
    Leaving,
}

/// What is to be done about what was seen.
enum Next {
    Answer(Answer),
    Ask,
}

const STILL_TAKEN: Answer = Answer::Taken {
    is_queued: true,
    holder: None,
};

/// After so many looks that were outdated at once, one that wants to share a name without waiting stands in line for a moment.
const LOOKS: usize = 3;

/// The part of the pause between two heartbeats that is random.
const JITTER: f64 = 0.15;

impl Wait for EtcdWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        let asked = self.ask_until_clear(request, pace.is_some(), deadline);
        asked.map_err(|Unanswered { error, sent }| {
            let own = self.commands.owners.get(request.owner);
            let is_clear = !sent && own.is_none_or(|own| !own.is_unclear);
            match self.state {
                State::Leaving => {}
                // It has only read.
                State::InLine(_) if !sent => self.watching = None,
                // It has nothing but its lease.
                State::Out if is_clear => self.commands.retire(request.owner, deadline),
                _ => self.state = State::Unclear,
            }
            // It may have a place also where its last question didn't go out.
            let sent = sent || self.state != State::Out;
            let error = self.commands.error(Some(request.key().name()), error);
            Unanswered { error, sent }
        })
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let blocker = self.blocker.clone();
        let is_in_line = matches!(self.state, State::InLine(_));
        let left = if is_in_line {
            self.beat.since(self.commands.clock.now())
        } else {
            request.ttl / 3
        };
        self.has_changed = true;
        // Whoever counts attempts makes one after each pause, whatever happens meanwhile.
        let Some(blocker) = blocker.filter(|_| is_in_line && !pace.counted) else {
            let pause = pace.next_pause().min(left);
            pace.until.sleep(pause);
            return None;
        };
        let until = pace.until.within(left);
        if let Err(failure) = self.watch(blocker, &until) {
            self.watching = None;
            log::debug!("etcd can't be watched, so it is asked again: {failure}");
            until.sleep(pace.next_pause());
        }
        None
    }
}

impl EtcdWait {
    pub(super) fn new(commands: Arc<Commands>) -> Self {
        EtcdWait {
            commands,
            state: State::Out,
            fits_at: None,
            proved: BootInstant::START,
            beat: BootInstant::START,
            blocker: None,
            watching: None,
            has_missed: false,
            has_changed: true,
        }
    }

    fn ask_until_clear(
        &mut self,
        request: Request<'_>,
        waits: bool,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        self.fits_at = None;
        if self.state == State::Leaving {
            self.go_out(request, deadline)?;
            return Ok(Answer::Broken);
        }
        for looks in 0.. {
            let enters = waits || looks > LOOKS;
            if let Next::Answer(answer) = self.ask_once(request, (waits, enters), deadline)? {
                return Ok(answer);
            }
            if deadline.is_over() {
                break;
            }
        }
        let cause = "there was no time to ask again";
        Err(Unanswered::unsent(Failure::Unreachable(cause.into())))
    }

    fn ask_once(
        &mut self,
        request: Request<'_>,
        (waits, enters): (bool, bool),
        deadline: &Deadline,
    ) -> Result<Next, Unanswered<Failure>> {
        let own = self.own(request, deadline).map_err(Unanswered::unsent)?;
        let is_quiet = waits && !self.has_changed && self.blocker.is_some();
        let is_about_lease = self.is_due() && (is_quiet || own.touched.is_none());
        let asked = match self.state {
            State::InLine(created) if is_about_lease && is_quiet => {
                self.commands.keep(request, &own, created, deadline)
            }
            _ => self.question(request, &own, enters, deadline),
        };
        match asked {
            Ok(Entered::Kept(since)) => {
                self.beat = next_beat(since, request.ttl);
                Ok(Next::Answer(STILL_TAKEN))
            }
            Ok(Entered::Seen(seen)) => self.saw(request, &seen, waits, deadline),
            Ok(Entered::In(grant, by)) => {
                self.confirm(request, by);
                self.granted(request, grant, deadline)
            }
            Err(unanswered) if matches!(unanswered.error, Failure::LeaseGone) => {
                self.lose_lease(request, is_about_lease, deadline);
                Ok(Next::Ask)
            }
            Err(unanswered) => Err(unanswered),
        }
    }

    /// What this process knows of the owner, which has a lease now. One that is out takes another if that isn't new any more.
    fn own(&mut self, request: Request<'_>, deadline: &Deadline) -> Result<Own, Failure> {
        let commands = &self.commands;
        let mut own = commands.own(request, deadline)?;
        if self.state == State::Out && !commands.leases.is_fresh(&own.lease, request.ttl) {
            commands.drop_lease(request.owner, deadline);
            own = commands.own(request, deadline)?;
        }
        if self.proved != own.lease.since {
            self.proved = own.lease.since;
            self.beat = next_beat(self.proved, request.ttl);
        }
        Ok(own)
    }

    /// What a member has said of a lease counts if it leads on.
    fn confirm(&self, request: Request<'_>, by: Seen) {
        let owners = &self.commands.owners;
        owners.change(request.owner, |own| own.confirm(by));
    }

    fn question(
        &mut self,
        request: Request<'_>,
        own: &Own,
        enters: bool,
        deadline: &Deadline,
    ) -> Result<Entered, Unanswered<Failure>> {
        let commands = &self.commands;
        let is_alone = request.claim.is_exclusive();
        let has_missed = std::mem::take(&mut self.has_missed);
        match self.state {
            State::Unclear | State::Leaving => commands.look(request, own, None, deadline),
            State::Out if is_alone => commands.enter_alone(request, own, enters, deadline),
            State::Out if enters => commands.enter_line(request, own, deadline),
            State::Out => match self.fits_at {
                None => commands.enter_empty_line(request, own, deadline),
                Some(revision) => commands.enter_line_as_seen(request, own, revision, deadline),
            },
            State::InLine(created) if self.is_due() && own.touched.is_none() => {
                commands.beat(request, own, created, deadline)
            }
            // Going in is a commit also where somebody is still ahead.
            State::InLine(created) if is_alone && !has_missed => {
                commands.go_in(request, own, created, deadline)
            }
            State::InLine(created) => commands.look(request, own, Some(created), deadline),
        }
    }

    fn is_due(&self) -> bool {
        self.beat <= self.commands.clock.now()
    }

    /// A lease that the last question used isn't there any more: that of the owner, or that of what is to be told of it.
    fn lose_lease(&mut self, request: Request<'_>, is_own: bool, deadline: &Deadline) {
        if self.state == State::Out || !is_own {
            self.commands.leases.lose_memory();
        }
        if self.state == State::Out || is_own {
            self.commands.drop_lease(request.owner, deadline);
            self.state = State::Out;
        }
    }

    /// The owner has the lock, if its lease lasts.
    fn granted(
        &mut self,
        request: Request<'_>,
        grant: Entry,
        deadline: &Deadline,
    ) -> Result<Next, Unanswered<Failure>> {
        let Entry {
            created,
            abandoned,
            value,
        } = grant;
        self.state = State::InLine(created);
        let (commands, now) = (&self.commands, self.commands.clock.now());
        let mut since = self.proved;
        if let Some(own) = commands.owners.get(request.owner) {
            since = own.lease.since;
            if request.ttl / 2 < now.since(since) {
                match commands.beat(request, &own, created, deadline) {
                    Err(e) if matches!(e.error, Failure::LeaseGone) => {
                        self.lose_lease(request, true, deadline);
                    }
                    proved => _ = proved?,
                }
                return Ok(Next::Ask);
            }
        }
        Ok(Next::Answer(Answer::Granted(Grant {
            token: token_of(created, abandoned),
            value,
            since,
        })))
    }

    /// Gives up all places.
    fn go_out(
        &mut self,
        request: Request<'_>,
        deadline: &Deadline,
    ) -> Result<(), Unanswered<Failure>> {
        self.state = State::Leaving;
        self.commands.leave(request, deadline)?;
        self.commands.retire(request.owner, deadline);
        (self.state, self.blocker, self.watching) = (State::Out, None, None);
        Ok(())
    }

    /// Waits until what stands in the way may have changed since it was seen, or until then.
    fn watch(&mut self, blocker: Blocker, until: &Deadline) -> Result<(), Failure> {
        let watching = self.watching.take();
        let same = watching.filter(|(of, _)| of.is_watched_as(&blocker));
        let mut watch = match same {
            Some((_, watch)) => watch,
            None => {
                let watch = blocker.watch(&self.commands.client, until)?;
                // Also when it begins earlier: after data was restored the revisions that come are smaller.
                self.has_missed = watch.begins_after() != blocker.revision;
                watch
            }
        };
        loop {
            let events = match self.has_missed {
                true => Vec::new(),
                false => watch.next(until)?,
            };
            let is_news = blocker.is_changed_by(&events);
            if is_news || events.is_empty() {
                self.has_changed = is_news || self.has_missed;
                self.watching = Some((blocker, watch));
                return Ok(());
            }
        }
    }
}

/// When to keep a lease alive that lasts from then on.
fn next_beat(since: BootInstant, ttl: Duration) -> BootInstant {
    since.plus(shortened(ttl / 3, JITTER))
}
