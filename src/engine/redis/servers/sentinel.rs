//! The master that sentinels name: it has all names, until another server takes its place.
//!
//! | what is known | a call | left when |
//! |---|---|---|
//! | nothing | looks up, again and again, within its deadline | a sentinel names a server: `known` |
//! | `known` | sends to it; first it looks up, if the last look-up is older than the route allows | its connection fails, it can't serve, or too few replicas have what it wrote: `suspected`; another server is named: `replaced` |
//! | `suspected`: a call to it has failed so since it was looked up | looks up, and sends to it all the same if it is named again, or nobody answers | it is named again: `known`; another is: `replaced` |
//! | `replaced` | goes to the new one; connections to the old one are closed, and its inbox | |
//!
//! A call that waits for an answer for long looks up beside that: see [`watch`](super::watch). All callers that look up at one time wait for one [`Lookup`], each within its own deadline. And the edges:
//!
//! - *No sentinel answers.* Who needs a master that was looked up lately goes on with the one that is known: to lose the
//!   sentinels mustn't lose the locks. It is logged once, and for a second nobody looks up for that reason again.
//! - *A sentinel is behind*, or cut off, and the only one that answers: an epoch that is lower than that of the known
//!   master doesn't count. If all sentinels say so, or a majority does although the known master has failed, or for
//!   seconds, then they were set up anew.
//! - *The master has just become one, or isn't one any more.* Each new connection asks for its ROLE, and nothing is sent to
//!   one that says "replica": the call looks up again, and waits for 50 ms if it is still that one.
//! - *A command was sent, and has no answer.* It is sent again only to another master, only by [`Servers::call`], and only
//!   while the deadline isn't over: to the same one its caller sends it again, after its pause.
//! - *A command was carried out by two masters*, one after the other. What the second one answers is true there: an owner
//!   that asks again gets its token, or a larger one if its lease wasn't copied; a renewal, a store or an adoption of a lease
//!   that wasn't copied finds none. Lock and counter are copied in one piece, so a token is never used twice. But where
//!   others have had the lock since, a release can't tell whether its first copy ended the lease: by [`Answer::moved`] its
//!   value isn't taken for stored.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use self::lookup::{AFTER_FIRST, Heard, Lookup, after_first, place};
use self::question::Question;
use self::state::{Known, Master, OUTAGE, State};
use super::{Refused, Route, Servers};
use crate::base::clock::Deadline;
use crate::base::sys::sync::Mutex;
use crate::base::sys::time;
use crate::engine::Unanswered;
use crate::engine::net::address::{Endpoint, HostPort, Login};
use crate::engine::net::limits::SHORTEST_SHARE;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::{Answer, Manner, Server};
use crate::engine::redis::settings::Settings;

mod greeting;
mod lookup;
pub(super) mod question;
mod state;
mod watch;

/// How long to wait before the next look-up, where the last one led to no master.
const AGAIN: Duration = Duration::from_millis(50);

/// A master may have been looked up so long ago at most, where that matters. One that an operator replaces by SENTINEL
/// FAILOVER takes itself for the master for seconds after that, and says yes to everything.
const KNOWN: Duration = Duration::from_secs(1);

/// Within this time all sentinels learn of a failover from the one that led it.
const SPREAD: Duration = Duration::from_secs(10);

/// The servers behind sentinels.
#[derive(Debug)]
pub(super) struct Sentinels {
    settings: Arc<Settings>,
    sentinels: Vec<Arc<Server>>,
    question: Question,
    state: Mutex<State>,
    /// For calls that watch for the next master while they wait.
    me: Weak<Sentinels>,
}

impl Sentinels {
    /// Fails if a host can have no certificate.
    pub(super) fn open(
        hosts: Vec<HostPort>,
        master: &str,
        login: Login,
        settings: Arc<Settings>,
    ) -> Result<Arc<dyn Servers>, Failure> {
        let own = Arc::new(settings.of_sentinels(login));
        let sentinel =
            |host| Ok::<_, Failure>(Arc::new(Server::new(Endpoint::Tcp(host), own.clone())?));
        let sentinels = hosts.into_iter().map(sentinel);
        let sentinels = sentinels.collect::<Result<_, _>>()?;
        let name = master.to_owned();
        Ok(Sentinels::new(settings, sentinels, Question { name }, None))
    }

    fn new(
        settings: Arc<Settings>,
        sentinels: Vec<Arc<Server>>,
        question: Question,
        master: Option<Master>,
    ) -> Arc<Self> {
        let state = State {
            master,
            ..State::default()
        };
        Arc::new_cyclic(|me| Sentinels {
            settings,
            sentinels,
            question,
            state: Mutex::new(state),
            me: me.clone(),
        })
    }

    /// The master to send a command to.
    fn master(&self, route: Route<'_>, deadline: &Deadline) -> Result<Arc<Server>, Failure> {
        let within = route.known_within.map(|within| within.min(KNOWN));
        let within = within.unwrap_or(Duration::MAX);
        let known = self.state.lock().known(within);
        match known {
            Known::Nothing => self.any_master(&deadline.within(self.settings.connect_timeout)),
            Known::Master(server) => Ok(server),
            Known::Perhaps {
                server,
                since,
                is_outage,
            } => {
                // What is left of the time is for the command.
                let patience = (deadline.remaining() / 2).min(self.settings.connect_timeout);
                let patience = if is_outage {
                    patience.min(SHORTEST_SHARE)
                } else {
                    patience
                };
                let until = deadline.within(patience);
                let found = self.look_up(Some(since), after_first(within), &until);
                Ok(found.unwrap_or_else(|failure| {
                    if !until.is_over() || patience >= SHORTEST_SHARE && !until.is_cancelled() {
                        self.tell_outage(failure);
                    }
                    server
                }))
            }
        }
    }

    /// The first master that is named.
    fn any_master(&self, until: &Deadline) -> Result<Arc<Server>, Failure> {
        loop {
            let began = time::now();
            match self.look_up(None, AFTER_FIRST, until) {
                Ok(master) => return Ok(master),
                Err(failure @ Failure::Denied(_)) => return Err(failure),
                Err(failure) if until.remaining() <= AGAIN => return Err(failure),
                Err(_) => until.sleep(AGAIN.saturating_sub(time::since(began))),
            }
        }
    }

    /// The master, by a look-up that began at `since` or later.
    fn look_up(
        &self,
        since: Option<Instant>,
        after_first: Duration,
        until: &Deadline,
    ) -> Result<Arc<Server>, Failure> {
        loop {
            let lookup = self.join_or_start();
            let heard = lookup.wait(after_first, until);
            if until.is_over() || since.is_none_or(|since| lookup.began >= since) {
                return self.believe(&lookup, &heard);
            }
        }
    }

    fn join_or_start(&self) -> Arc<Lookup> {
        let mut state = self.state.lock();
        if let Some(lookup) = state.lookup.as_ref().filter(|last| last.is_undecided()) {
            return lookup.clone();
        }
        let lookup = Arc::new(Lookup::start(&self.sentinels, &self.question));
        let last = state.lookup.replace(lookup.clone());
        drop(state);
        drop(last);
        lookup
    }

    /// Takes over what sentinels said, if that is newer than what is known.
    fn believe(&self, lookup: &Lookup, heard: &Heard) -> Result<Arc<Server>, Failure> {
        let Some(view) = heard.newest() else {
            return Err(heard.failure());
        };
        let mut state = self.state.lock();
        state.outage = None;
        let endpoint = Endpoint::Tcp(view.at.clone());
        if let Some(known) = &mut state.master {
            let is_behind = view.epoch < known.epoch && !heard.is_of_all() && {
                let unconfirmed = lookup.began.saturating_duration_since(known.found);
                !heard.is_of_majority() || (known.failed.is_none() && unconfirmed < SPREAD)
            };
            if is_behind || lookup.began < known.found {
                return Ok(known.server.clone());
            }
            if *known.server.endpoint() == endpoint {
                (known.epoch, known.found) = (view.epoch, lookup.began);
                known.failed = known.failed.filter(|failed| *failed > lookup.began);
                known.doubted = known.doubted.filter(|doubted| *doubted > lookup.began);
                return Ok(known.server.clone());
            }
        }
        let server = Arc::new(Server::new(endpoint, self.settings.clone())?);
        let replaced = state.master.replace(Master {
            server: server.clone(),
            epoch: view.epoch,
            found: lookup.began,
            failed: None,
            doubted: None,
        });
        drop(state);
        if let Some(old) = replaced {
            let (shown, old) = (&self.settings.shown, old.server);
            let (from, to) = (place(&old), place(&server));
            log::info!("the master of {shown} is {to} now, and was {from}");
            old.retire();
        }
        Ok(server)
    }

    /// Another master than the one to which a call has failed, or that one, if it may have become one meanwhile.
    fn successor(
        &self,
        of: &Arc<Server>,
        is_demoted: bool,
        until: &Deadline,
    ) -> Option<Arc<Server>> {
        let failed = self.suspect(of);
        if until.is_over() {
            return None;
        }
        match self.look_up(Some(failed), AFTER_FIRST, until) {
            Ok(other) if !Arc::ptr_eq(&other, of) => return Some(other),
            _ if !is_demoted => return None,
            _ => until.sleep(AGAIN),
        }
        (!until.is_over()).then(|| of.clone())
    }

    /// Has the next call look up, if it is the master that has failed now.
    fn suspect(&self, server: &Arc<Server>) -> Instant {
        let now = time::now();
        let mut state = self.state.lock();
        let master = state.master.as_mut();
        if let Some(master) = master.filter(|master| Arc::ptr_eq(&master.server, server)) {
            master.failed = Some(now);
        }
        now
    }

    /// Has the next call look up, if it is the master that is asked whether it is one still.
    fn doubt(&self, server: &Arc<Server>) {
        let mut state = self.state.lock();
        let master = state.master.as_mut();
        if let Some(master) = master.filter(|master| Arc::ptr_eq(&master.server, server)) {
            master.doubted = Some(time::now());
        }
    }

    fn tell_outage(&self, failure: Failure) {
        let level = match self.state.lock().outage.replace(time::now()) {
            None => log::Level::Warn,
            Some(_) => log::Level::Debug,
        };
        let (shown, cause) = (&self.settings.shown, failure.cause());
        log::log!(
            level,
            "{shown} goes on with the master that is known: {cause}"
        );
    }

    /// Sends a command to the master, and to the next one if that one fails.
    fn send(
        &self,
        route: Route<'_>,
        deadline: &Deadline,
        is_resent: bool,
        send: impl Fn(&Arc<Server>) -> Result<Answer, Unanswered<Failure>>,
    ) -> Result<Answer, Unanswered<Failure>> {
        let found = self.master(route, deadline);
        let mut server = found.map_err(Unanswered::unsent)?;
        // To any server but the last.
        let mut was_sent = false;
        let mut until = None;
        loop {
            let answer = send(&server);
            if is_doubtful(&answer) {
                self.doubt(&server);
            }
            let Unanswered { error, sent } = match answer {
                Ok(answer) => {
                    return Ok(Answer {
                        repeated: was_sent || answer.repeated,
                        moved: was_sent,
                        ..answer
                    });
                }
                Err(unanswered) => unanswered,
            };
            was_sent |= sent;
            let is_demoted = matches!(error, Failure::Demoted(_));
            // To find the next master is a part of connecting to it.
            let until =
                &*until.get_or_insert_with(|| deadline.within(self.settings.connect_timeout));
            let next = match error.is_of_connection() && (is_resent || !sent) {
                true => self.successor(&server, is_demoted, until),
                false => None,
            };
            let Some(next) = next else {
                return Err(Unanswered {
                    error,
                    sent: was_sent,
                });
            };
            server = next;
        }
    }
}

/// Whether a master that was replaced, and is cut off from its replicas, would answer so, too.
fn is_doubtful(answer: &Result<Answer, Unanswered<Failure>>) -> bool {
    match answer {
        Ok(answer) => answer.shortfall.is_some(),
        Err(unanswered) => matches!(unanswered.error, Failure::Busy(_)),
    }
}

impl Servers for Sentinels {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn greet(&self) -> Result<(), Refused> {
        self.find_first()
    }

    fn call(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        self.send(route, deadline, true, |server| {
            server.call(command, Manner::Plain, &self.watched(server, deadline))
        })
    }

    fn call_once(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        self.send(route, deadline, false, |server| {
            server.call_once(command, Manner::Plain, &self.watched(server, deadline))
        })
    }

    fn known(&self, _route: Route<'_>) -> Option<Arc<Server>> {
        let state = self.state.lock();
        state.master.as_ref().map(|master| master.server.clone())
    }

    fn all(&self, deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure> {
        let route = Route {
            key: "",
            known_within: Some(OUTAGE),
        };
        Ok(vec![self.master(route, deadline)?])
    }

    fn without_locks(&self) -> Vec<Arc<Server>> {
        self.sentinels.clone()
    }

    fn after_fork(&self) -> Arc<dyn Servers> {
        let settings = Arc::new(self.settings.after_fork());
        let login = self.sentinels[0].settings().login.clone();
        let own = Arc::new(settings.of_sentinels(login));
        let sentinels = self.sentinels.iter();
        let sentinels = sentinels.map(|sentinel| Arc::new(sentinel.after_fork(own.clone())));
        // Another thread of the parent may have locked it.
        let state = self.state.try_lock();
        let master = state.as_ref().and_then(|state| state.master.as_ref());
        let master = master.map(|master| Master {
            server: Arc::new(master.server.after_fork(settings.clone())),
            ..*master
        });
        Sentinels::new(settings, sentinels.collect(), self.question.clone(), master)
    }
}
