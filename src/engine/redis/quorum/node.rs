//! One server of a quorum: whether it answers, and how it is connected to.
//!
//! A server that fails is left alone for [`PAUSE`]: then one call connects to it. So a server that is down costs the
//! others nothing. One that hangs, or can't be reached, costs one call [`SILENCE`] now and then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::voter::TokenClock;
use crate::base::sys::{sync::Mutex, time};
use crate::base::{Cancel, Deadline};
use crate::engine::redis::connection::Connection;
use crate::engine::redis::lock_scripts::LockScripts;
use crate::engine::redis::round::Arrivals;
use crate::engine::redis::{failure::Failure, server::Server, servers::Servers};

const PAUSE: Duration = Duration::from_millis(250);

/// For how long a server may owe an answer until it counts as failed.
pub(super) const SILENCE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Node {
    pub(super) server: Arc<Server>,
    pub(super) scripts: Arc<LockScripts>,
    health: Mutex<Health>,
}

#[derive(Debug, Default)]
struct Health {
    outage: Option<Outage>,
    /// Since when a connection is being made.
    connecting_since: Option<Instant>,
}

#[derive(Debug)]
struct Outage {
    cause: String,
    again_at: Instant,
}

impl Node {
    pub(super) fn new(server: Server) -> Arc<Self> {
        let server = Arc::new(server);
        let servers = Servers::One(server.clone());
        Arc::new(Node {
            server,
            scripts: Arc::new(LockScripts::new(Arc::new(servers))),
            health: Mutex::default(),
        })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Arc<Self> {
        let settings = Arc::new(self.server.settings().after_fork());
        Node::new(self.server.after_fork(settings))
    }

    /// Whether it is likely to answer, and may vote.
    pub(super) fn is_up(&self) -> bool {
        self.votes() && self.health.lock().outage.is_none()
    }

    /// Whether it was started long enough ago. What it doesn't have says nothing before.
    pub(super) fn votes(&self) -> bool {
        self.server.voter().is_none_or(|voter| voter.votes())
    }

    /// It has answered, or failed in this way. In the pause after a failure a further one is no news.
    pub(super) fn heard(&self, failure: Option<&Failure>) {
        let failure = failure.filter(|failure| failure.is_of_connection());
        let (now, mut health) = (time::now(), self.health.lock());
        let is_paused = |outage: &Outage| now < outage.again_at;
        if failure.is_some() && health.outage.as_ref().is_some_and(is_paused) {
            return;
        }
        let outage = failure.map(|failure| Outage {
            cause: failure.to_string(),
            again_at: now + PAUSE,
        });
        let was_up = std::mem::replace(&mut health.outage, outage).is_none();
        drop(health);
        if was_up == failure.is_none() {
            return;
        }
        let (address, shown) = (self.server.address(), &self.server.settings().shown);
        match failure {
            Some(cause) => log::warn!("{address} of {shown} doesn't answer: {cause}"),
            None => log::info!("{address} of {shown} answers again"),
        }
    }

    /// Connects to it, in a thread of its own.
    ///
    /// # Errors
    ///
    /// When it failed a short while ago.
    pub(super) fn connect(
        self: &Arc<Self>,
        at: usize,
        (clock, closed): (&TokenClock, &Cancel),
        arrivals: Arrivals,
    ) -> Result<(), Failure> {
        self.begin_to_connect()?;
        let (node, clock, is_closed) = (self.clone(), clock.clone(), closed.clone());
        let ended = move |made: &Result<Connection, Failure>| {
            // Where the locker was closed meanwhile, that says nothing of the server.
            if !is_closed.is_set() {
                node.end_connecting(made.as_ref().err());
            }
            if let Ok(Some(voter)) = made.as_ref().map(Connection::voter) {
                clock.saw(voter.ahead);
            }
        };
        let started = arrivals.connect((at, &self.server), Deadline::NEVER.or(closed), ended);
        if let Err(failure) = &started {
            self.end_connecting(Some(failure));
        }
        started
    }

    /// Whether a connection may be made now. Else it says why the last failed.
    fn begin_to_connect(&self) -> Result<(), Failure> {
        let (now, mut health) = (time::now(), self.health.lock());
        if let Some(outage) = &mut health.outage {
            if now < outage.again_at {
                return Err(Failure::Closed(outage.cause.clone().into()));
            }
            // Others don't try meanwhile.
            outage.again_at = now + PAUSE;
        }
        let since = *health.connecting_since.get_or_insert(now);
        if now.saturating_duration_since(since) > SILENCE {
            return Err(Failure::TimedOut("no connection to it in time".into()));
        }
        Ok(())
    }

    fn end_connecting(&self, failure: Option<&Failure>) {
        self.health.lock().connecting_since = None;
        self.heard(failure);
    }
}
