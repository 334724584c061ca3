//! The servers of a quorum: which of them answer, and how far their clocks are.
//!
//! A server that fails is left alone for a while, which doubles from [`FIRST_PAUSE`] to [`LONGEST_PAUSE`]: then one
//! call connects to it. So a server that is down costs the others nothing. One that hangs, or can't be reached, costs
//! one call [`SILENCE`] now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::base::sys::{channel::Sender, net::Waker, sync::Mutex, time};
use crate::base::{Cancel, Deadline, sys};
use crate::engine::redis::connection::Connection;
use crate::engine::redis::lock_scripts::LockScripts;
use crate::engine::redis::{failure::Failure, server::Server, servers::Servers};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// For how long a server may owe an answer until it counts as failed.
pub(super) const SILENCE: Duration = Duration::from_millis(250);

/// One of the servers.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) server: Arc<Server>,
    pub(super) scripts: Arc<LockScripts>,
    health: Mutex<Health>,
}

#[derive(Debug, Default)]
struct Health {
    failed: Option<Outage>,
    /// The scripts that it has carried out since it was connected to last: it needn't be sent them in full.
    scripts: Vec<usize>,
    /// The connections that are being made, and since when.
    connecting: (usize, Option<Instant>),
}

#[derive(Debug)]
struct Outage {
    cause: String,
    is_logged: bool,
    pause: Duration,
    again_at: Instant,
}

impl Node {
    pub(super) fn new(server: Server) -> Self {
        let server = Arc::new(server);
        let servers = Servers::One(server.clone());
        Node {
            server,
            scripts: Arc::new(LockScripts::new(Arc::new(servers))),
            health: Mutex::default(),
        }
    }

    /// Whether it is likely to answer, and may vote.
    pub(super) fn is_up(&self) -> bool {
        self.votes() && self.health.lock().failed.is_none()
    }

    /// Whether it was started long enough ago. What it doesn't have says nothing before.
    pub(super) fn votes(&self) -> bool {
        self.server.voter().is_none_or(|voter| voter.votes())
    }

    pub(super) fn answered(&self) {
        let failed = self.health.lock().failed.take();
        if failed.is_some_and(|outage| outage.is_logged) {
            let (address, shown) = (self.server.address(), &self.server.settings().shown);
            log::info!("{address} of {shown} answers again");
        }
    }

    /// Whether it surely has a script that it was sent.
    pub(super) fn has_script(&self, script: usize) -> bool {
        self.health.lock().scripts.contains(&script)
    }

    /// Whether it had it is known by its answer.
    pub(super) fn told_script(&self, script: usize, has_it: bool) {
        let mut health = self.health.lock();
        match (has_it, health.scripts.iter().position(|one| *one == script)) {
            (true, None) => health.scripts.push(script),
            (false, Some(at)) => _ = health.scripts.swap_remove(at),
            _ => {}
        }
    }

    pub(super) fn failed(&self, cause: &str) {
        if !self.pause(cause, true) {
            let (address, shown) = (self.server.address(), &self.server.settings().shown);
            log::warn!("{address} of {shown} doesn't answer: {cause}");
        }
    }

    /// Waiters go on elsewhere. Perhaps it only refuses them, and answers all else.
    pub(super) fn pass_over(&self, cause: &str) {
        self.pause(cause, false);
    }

    /// Whether it was logged that it doesn't answer.
    fn pause(&self, cause: &str, is_logged: bool) -> bool {
        let mut health = self.health.lock();
        let before = health.failed.take();
        let pause = before
            .as_ref()
            .map_or(FIRST_PAUSE, |outage| 2 * outage.pause);
        let pause = pause.min(LONGEST_PAUSE);
        let was_logged = before.is_some_and(|outage| outage.is_logged);
        health.failed = Some(Outage {
            cause: cause.to_owned(),
            is_logged: is_logged || was_logged,
            pause,
            again_at: time::now() + pause,
        });
        was_logged
    }

    /// Whether a connection may be made now. Else it says why the last failed.
    fn begin_to_connect(&self) -> Result<(), Failure> {
        let (now, mut health) = (time::now(), self.health.lock());
        if let Some(outage) = &mut health.failed {
            if now < outage.again_at {
                return Err(Failure::Closed(outage.cause.clone().into()));
            }
            // Others don't try meanwhile.
            outage.again_at = now + outage.pause;
        }
        let (count, since) = health.connecting;
        if since.is_some_and(|since| now.saturating_duration_since(since) > SILENCE) {
            return Err(Failure::TimedOut("no connection to it in time".into()));
        }
        health.connecting = (count + 1, since.or(Some(now)));
        Ok(())
    }

    fn end_connecting(&self, made: &Result<Connection, Failure>) {
        let mut health = self.health.lock();
        let (count, since) = health.connecting;
        let left = count.saturating_sub(1);
        health.connecting = (left, since.filter(|_| left > 0));
        // Perhaps it was started anew.
        health.scripts.clear();
        drop(health);
        match made {
            Ok(_) => self.answered(),
            Err(failure) => self.failed(&failure.to_string()),
        }
    }
}

/// All servers of a quorum, in the order of the URL.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) all: Vec<Arc<Node>>,
    /// When `clock` was 0.
    pub(super) began: Instant,
    /// The most that a server's clock was then, as far as it is known, in microseconds.
    clock: Arc<AtomicU64>,
    /// Set when they aren't used any more.
    closed: Cancel,
}

/// Who waits for a connection.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    pub(super) to: Sender<Arrival>,
    pub(super) waker: Arc<Waker>,
}

/// A connection to one of the servers, by its number.
pub(super) type Arrival = (usize, Result<Connection, Failure>);

impl Nodes {
    pub(super) fn new(all: Vec<Node>) -> Self {
        Nodes {
            all: all.into_iter().map(Arc::new).collect(),
            began: time::now(),
            clock: Arc::default(),
            closed: Cancel::default(),
        }
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        let own = |node: &Arc<Node>| {
            let settings = Arc::new(node.server.settings().after_fork());
            Node::new(node.server.after_fork(settings))
        };
        let mut forked = Nodes::new(self.all.iter().map(own).collect());
        forked.began = self.began;
        let clock = self.clock.load(Ordering::Relaxed);
        forked.clock.store(clock, Ordering::Relaxed);
        forked
    }

    /// How many servers are a majority.
    pub(super) fn majority(&self) -> usize {
        self.all.len() / 2 + 1
    }

    /// How many can be missing.
    pub(super) fn minority(&self) -> usize {
        self.all.len() - self.majority()
    }

    /// The first that is up: waiters stand in its queue. Where none is, the first.
    pub(super) fn line(&self) -> usize {
        self.all.iter().position(|node| node.is_up()).unwrap_or(0)
    }

    /// What the servers' clocks say now, in microseconds: the most that was seen, and the time that has passed since.
    pub(super) fn time(&self) -> u64 {
        let passed = micros_between(self.began, time::now());
        self.clock.load(Ordering::Relaxed).saturating_add(passed)
    }

    /// A server's clock was that far then, or a token that large was granted.
    pub(super) fn saw(&self, micros: u64, then: Instant) {
        saw(&self.clock, self.began, micros, then);
    }

    /// Connects to a server, in a thread of its own. What isn't waited for any more is kept for later.
    ///
    /// # Errors
    ///
    /// When it failed a short while ago.
    pub(super) fn connect(&self, at: usize, arrivals: Arrivals) -> Result<(), Failure> {
        let node = self.all[at].clone();
        node.begin_to_connect()?;
        let timeout = node.server.settings().connect_timeout;
        let deadline = Deadline::after(timeout).or(&self.closed);
        let (clock, began) = (self.clock.clone(), self.began);
        let connecting = node.clone();
        let connect = move || {
            let made = connecting.server.connect(&deadline);
            connecting.end_connecting(&made);
            if let Ok(connection) = &made
                && let Some(voter) = connection.voter()
            {
                let (micros, then) = voter.clock();
                saw(&clock, began, micros, then);
            }
            if let Err(unread) = arrivals.to.send((at, made))
                && let (_, Ok(connection)) = unread.0
            {
                connecting.server.keep(connection);
            }
            arrivals.waker.wake();
        };
        sys::spawn("crosslock-connect", connect).map_err(|e| {
            let failure =
                Failure::Closed(format!("can't start a thread that connects: {e}").into());
            node.end_connecting(&Err(Failure::Closed(failure.to_string().into())));
            failure
        })
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.closed.set();
    }
}

fn saw(clock: &AtomicU64, began: Instant, micros: u64, then: Instant) {
    let at_first = micros.saturating_sub(micros_between(began, then));
    clock.fetch_max(at_first, Ordering::Relaxed);
}

fn micros_between(earlier: Instant, later: Instant) -> u64 {
    let passed = later.saturating_duration_since(earlier).as_micros();
    passed.try_into().unwrap_or(u64::MAX)
}
