//! A session with ZooKeeper's servers: requests and their answers, watches, and the proof that the session lives.
//!
//! It uses `base`, `engine::net`, the address, and the teller. A session has one thread and one connection at a time.
//!
//! | phase | the connection | next phase |
//! |---|---|---|
//! | connecting | the caller of `open` makes it; there is no session yet | connected, when a server has made one |
//! | connected | the thread reads it; the holder of the writer's lock sends on it | disconnected, or ended |
//! | disconnected | the thread makes a new one, at one host after the other | connected, or ended |
//! | ended | there is none | |
//!
//! A session is disconnected when its connection fails, or its server is silent for a quarter of the timeout. It is
//! connected again when a server has taken it up. It ends when it is over by our own clock, when a server doesn't
//! know it any more, and when it is closed.
//!
//! Two locks: the *writer's* is held by who sends, and taken first; the *state's* guards all else, for short. What is
//! sent is enlisted as pending while both are held, so that the order of what is pending is that of the connection.
//! Servers answer in that order. Watchers, and those who are told of the end, are called without any lock.
//!
//! What the server sends:
//!
//! - *an answer*: it is to the first that is pending, and has its number. Its caller is woken. If it has a watch,
//!   that counts from then on: the events that it is to hear come behind. A `sync` is noted in
//!   [`Proof`](proof::Proof).
//! - *an event*: whoever watches that is told, and the watch is over.
//! - *anything else*, or a frame that can't be right: the connection is closed.
//!
//! What can happen meanwhile:
//!
//! - *An answer meets its caller's deadline.* It counts if it was there when the caller looked; later it is nobody's.
//!   The connection stays: answers have numbers, so that none is taken for another. What was sent is carried out
//!   before all that this session sends later.
//! - *The connection is lost.* What was sent has no answer, and may have been carried out. It isn't sent again. Who
//!   wants to send waits for the next connection, until its deadline.
//! - *A watch meets that.* All watchers are told [`WatchEvent::ConnectionLost`], also those whose answers are
//!   missing, and ask again. Watches aren't made anew: whoever waits has to look anyway.
//! - *A write fails, or a part of it is sent.* The connection is closed, and the thread finds its end.
//! - *A server is cut off from its leader.* It doesn't answer a `sync`, and is left for its silence.
//! - *The session is over by our clock, and servers don't know it.* It has ended all the same. Servers delete its
//!   nodes when it is over for them: that is later.
//! - *The last who has the session leaves.* The connection is shut down, which the thread finds. What it waits for
//!   else looks whether the session is closed, every 25 ms.
//! - *A fork.* A child sends nothing, takes no lock, and closes nothing: for it the session has ended. It opens
//!   another.

use std::sync::{Arc, atomic::Ordering};
use std::{fmt, time::Duration};

pub(super) use self::failure::{Code, Failure};
pub(super) use self::ops::{Change, Kind, Op, Refused, Replies, Reply, Stat};
use self::servers::{Bounds, Connection, Servers};
pub(super) use self::servers::{Hosts, Word};
pub(super) use self::shared::News;
use self::shared::{Phase, Shared};
pub(super) use self::watch::{WatchEvent, Watcher};
use self::wire::{Handshake, LONGEST_REQUEST};
use self::{ops::Answer, pending::Item, watch::AnswerSlot};
use super::address::Address;
use crate::base::{BootInstant, Clock, Deadline, Error, Options, Process, Result};
use crate::engine::Failed;

mod failure;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod jute;
mod ops;
mod pending;
mod proof;
mod servers;
mod shared;
mod thread;
mod watch;
mod wire;

/// A session, whose thread ends with it.
pub(super) struct Session {
    shared: Arc<Shared>,
    /// The number by which servers know it.
    id: i64,
    process: Process,
}

/// The shortest session, in ticks: much of it is left when its proof comes.
const LEAST_TICKS: u32 = 4;

/// The age, in ticks, that the proof of a session reaches while its beats are answered in time: three of them are
/// three quarters of a tick apart.
const PROVEN_TICKS: u32 = 3;

impl Session {
    /// Connects. The servers have to give sessions of just this `timeout`, which has to be four of their ticks at
    /// least; otherwise the error says what is possible.
    pub(super) fn open(
        address: Address,
        timeout: Duration,
        options: &Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>> {
        let endpoint = address.shown.clone();
        let given = address.tick;
        let hosts = Hosts::of(&address)?;
        let servers = Servers::new(address, hosts, options.connect_timeout, options.io_timeout);
        let deadline = Deadline::after(options.connect_timeout);
        let failed = |failure: Failure| failure.into_error(None, &endpoint);
        let bounds = servers.bounds(&*clock, &deadline).map_err(failed)?;
        let tick = given.unwrap_or_else(|| bounds.tick());
        check(timeout, bounds, tick, given.is_some())?;
        Session::start(servers, timeout, tick, clock, &deadline).map_err(failed)
    }

    /// By when a call is given up that has this deadline, and time without end otherwise.
    pub(super) fn gives_up_by(&self, deadline: &Deadline) -> Deadline {
        let servers = &self.shared.servers;
        deadline.within(servers.connect_timeout + servers.io_timeout)
    }

    /// By when another is to be open that a call needs which has this deadline.
    pub(super) fn opens_by(&self, deadline: &Deadline) -> Deadline {
        deadline.within(self.shared.servers.connect_timeout)
    }

    /// How its servers are found.
    pub(super) fn hosts(&self) -> &Arc<Hosts> {
        &self.shared.servers.hosts
    }

    /// What each host answers to one of the words of four letters, on a connection of its own.
    pub(super) fn words(&self, word: &str, deadline: &Deadline) -> Vec<Word> {
        self.shared.servers.words(word, deadline)
    }

    /// Opens another session with the same servers, in place of one that has ended, or in a child that was forked
    /// off, which has hosts of its own.
    pub(super) fn open_another(
        &self,
        hosts: &Arc<Hosts>,
        deadline: &Deadline,
    ) -> Result<Arc<Self>, Failure> {
        let Shared {
            servers,
            timeout,
            tick,
            clock,
            ..
        } = &*self.shared;
        Session::start(
            servers.another(hosts),
            *timeout,
            *tick,
            clock.clone(),
            deadline,
        )
    }

    fn start(
        servers: Servers,
        timeout: Duration,
        tick: Duration,
        clock: Arc<dyn Clock>,
        deadline: &Deadline,
    ) -> Result<Arc<Self>, Failure> {
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let connect = |place, deadline: &Deadline| {
            servers.connect(place, Handshake::new(millis), &*clock, deadline)
        };
        let connection = servers.with_any(deadline, connect)?;
        is_as_long(&connection, millis)?;
        let shared = Shared::new(servers, &connection, (timeout, tick), clock);
        let session = Arc::new(Session {
            id: connection.response.session,
            shared: Arc::new(shared),
            process: Process::current(),
        });
        thread::start(&session.shared, connection)?;
        Ok(session)
    }

    /// For errors: where locks live, without the login.
    pub(super) fn endpoint(&self) -> &str {
        &self.shared.servers.address.shown
    }

    /// The path under which all nodes are: "" or `/a/b`.
    pub(super) fn chroot(&self) -> &str {
        &self.shared.servers.address.chroot
    }

    /// Whose nodes are this session's: see [`Stat::ephemeral_owner`].
    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// The servers' tickTime.
    pub(super) fn tick(&self) -> Duration {
        self.shared.tick
    }

    /// Sends all in one write. Each has its own answer. They are carried out in this order, and in that of calls.
    pub(super) fn call(
        &self,
        requests: &[Op],
        deadline: &Deadline,
    ) -> Result<Replies, Failed<Failure>> {
        // A server without a leader answers pings, and nothing else.
        let deadline = &deadline.within(self.shared.servers.io_timeout);
        let slot = self.begin(requests, deadline)?;
        let answers = slot.wait(deadline).map_err(Failed::sent)?;
        Ok(Replies::of(answers))
    }

    /// The same without waiting for answers: what fails then is told to nobody.
    pub(super) fn send(&self, requests: &[Op], deadline: &Deadline) -> Result<(), Failed<Failure>> {
        self.begin(requests, deadline).map(drop)
    }

    fn begin(
        &self,
        requests: &[Op],
        deadline: &Deadline,
    ) -> Result<Arc<AnswerSlot<Answer>>, Failed<Failure>> {
        if !self.process.is_current() {
            return Err(Failed::unsent(Failure::Ended));
        }
        let slot = Arc::new(AnswerSlot::new(requests.len()));
        let acl = self.shared.servers.acl();
        let items = requests.iter().map(|op| Item::new(op, acl, &slot));
        let items: Vec<_> = items.collect();
        let longest = items.iter().map(Item::bytes).max().unwrap_or_default();
        if longest > LONGEST_REQUEST {
            return Err(Failed::unsent(Failure::TooLarge(longest)));
        }
        let deadline = &deadline.within(self.shared.servers.io_timeout);
        self.shared.send(items, deadline)?;
        Ok(slot)
    }

    /// The servers keep the session from then on for its timeout at least. `None` once it has ended.
    pub(super) fn proven_since(&self) -> Option<BootInstant> {
        if !self.process.is_current() {
            return None;
        }
        let state = self.shared.state.lock();
        let has_ended = matches!(state.phase, Phase::Ended { .. });
        Some(state.proof.since()).filter(|_| !has_ended)
    }

    /// The same, if its beats are answered in time: then it gets no newer because the leader is asked.
    pub(super) fn proven_lately(&self) -> Option<BootInstant> {
        let now = self.shared.clock.now();
        let since = self.proven_since()?;
        (now.since(since) <= self.tick() * PROVEN_TICKS).then_some(since)
    }

    /// Asks the leader whether the session lives, and returns since when that is proven: some two ticks ago.
    pub(super) fn prove(&self, deadline: &Deadline) -> Result<BootInstant, Failure> {
        self.call(&[Op::sync("/")], deadline)?.done()?;
        self.proven_since().ok_or(Failure::Ended)
    }

    /// Whether it has expired, or was closed. Then another is to be opened.
    pub(super) fn has_ended(&self) -> bool {
        if !self.process.is_current() {
            return true;
        }
        let state = self.shared.state.lock();
        let now = self.shared.clock.now();
        matches!(state.phase, Phase::Ended { .. })
            || self.shared.time_left_at(now, &state).is_zero()
    }

    /// Has `listener` called on the session's thread; at once, if the session has expired. It isn't told of the end
    /// of a session that is closed. It must not block, nor ask the session.
    pub(super) fn listen(&self, listener: impl Fn(News) + Send + Sync + 'static) {
        if !self.process.is_current() {
            return;
        }
        let mut state = self.shared.state.lock();
        match state.phase {
            Phase::Ended { expired: true } => {
                drop(state);
                listener(News::Expired);
            }
            Phase::Ended { expired: false } => {}
            Phase::Connected(_) | Phase::Disconnected(_) => {
                state.listener = Some(Arc::new(listener));
            }
        }
    }

    /// Ends it at the servers, which delete its ephemeral nodes. When it is only dropped they do so when it expires.
    pub(super) fn close(&self, deadline: &Deadline) {
        if !self.process.is_current() {
            return;
        }
        self.shared.is_closing.store(true, Ordering::Relaxed);
        // Without an answer it expires.
        let _ = self.call(&[Op::Close], deadline);
        self.shared.end(false);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.process.is_current() {
            self.shared.end(false);
        }
    }
}

/// Refuses a session that servers don't give, or whose proof comes too late.
fn check(timeout: Duration, bounds: Bounds, tick: Duration, is_given: bool) -> Result<()> {
    let least = bounds.least.max(tick * LEAST_TICKS);
    let is_whole = timeout.subsec_nanos().is_multiple_of(1_000_000);
    if is_whole && (least..=bounds.most).contains(&timeout) {
        return Ok(());
    }
    let hint = match is_given {
        true => "from the URL",
        false => {
            "as estimated from their sessions; if this is wrong, set it in the URL, such as ?tick=2s"
        }
    };
    let Bounds { most, .. } = bounds;
    let reason = format!(
        "{timeout:?} is out of range: use whole milliseconds from {least:?} to {most:?}. These servers allow sessions \
         of {:?} to {most:?}, and a ttl must have at least {LEAST_TICKS} ticks. Their tickTime is {tick:?}, {hint}",
        bounds.least
    );
    let option = "ttl";
    Err(Error::InvalidOption { option, reason })
}

/// Refuses a session of another length than was asked for: servers may differ.
fn is_as_long(connection: &Connection, millis: i32) -> Result<(), Failure> {
    let given = connection.response.timeout;
    if given == millis {
        return Ok(());
    }
    let text = format!("a server granted a session of {given} ms instead of {millis} ms");
    Err(Failure::Other(text.into()))
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("endpoint", &self.endpoint())
            .finish_non_exhaustive()
    }
}
