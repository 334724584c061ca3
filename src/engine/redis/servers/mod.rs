//! The servers of a URL, and which of them has a name.
//!
//! | URL | the server of a name | found out |
//! |---|---|---|
//! | `redis://` | the only one | |
//! | `redis+sentinel://` | the master, the same for all names | by asking all sentinels |
//! | `redis+cluster://` | the master of the name's slot | by asking nodes, and by their redirections |
//!
//! It uses `server`. What always holds here: all that is needed to find a server is done by the deadline of the call, and
//! a command is sent to another server only where that is harmless: it was refused, or its script makes it so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::address::{Address, At};
use super::failure::Failure;
use super::script::Command;
use super::server::{Answer, Server};
use super::settings::Settings;
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::options::Options;
use crate::engine::Unanswered;
use crate::engine::net::limits::CANCEL_LATENESS;

mod advice;
pub(super) mod ask_all;
mod cluster;
mod masters;
pub(super) mod node_lines;
mod sentinel;
mod single;
pub(super) mod slots;
mod watch;

/// The servers of a URL.
pub(super) trait Servers: fmt::Debug + Send + Sync {
    fn settings(&self) -> &Settings;

    /// Finds out whether there is a server that lets us in, and whether it is what the URL says.
    fn greet(&self) -> Result<(), Refused>;

    /// Sends a command to the server of a name, and gives its answer by `deadline`. It may be carried out twice.
    fn call(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>>;

    /// Sends a command that mustn't be carried out twice: never again after it may have reached a server.
    fn call_once(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>>;

    /// The server of a name, if it is known without asking.
    fn known(&self, route: Route<'_>) -> Option<Arc<Server>>;

    /// Whether another server may have what the server of a name has no more, or not yet.
    fn is_on_its_way(&self, _route: Route<'_>) -> bool {
        false
    }

    /// All servers that have locks.
    fn all(&self, deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure>;

    /// Servers without locks on which a failover depends, as far as they are known: sentinels, replicas of a cluster.
    fn without_locks(&self) -> Vec<Arc<Server>> {
        Vec::new()
    }

    /// The same for a child that was forked off, without its parent's connections.
    fn after_fork(&self) -> Arc<dyn Servers>;
}

/// Where a command is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'a> {
    /// One of its keys, whose hash tag decides on the slot.
    pub(super) key: &'a str,
    /// How long ago its server may have been found out, at most; `None` where a server that was replaced since does no
    /// harm.
    pub(super) known_within: Option<Duration>,
}

impl<'a> Route<'a> {
    pub(super) fn to(key: &'a str) -> Self {
        Route {
            key,
            known_within: None,
        }
    }

    /// The same for what an operator does: its server is found out anew.
    pub(super) fn anew(key: &'a str) -> Self {
        Route {
            key,
            known_within: Some(Duration::ZERO),
        }
    }
}

/// Why servers can't be used.
#[derive(Debug)]
pub(super) enum Refused {
    Failure(Failure),
    /// What the URL names is no such server.
    Error(Error),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Refused::Failure(failure)
    }
}

/// The servers of an address. Nothing is sent yet.
pub(super) fn new(address: Address, options: &Options) -> Result<Arc<dyn Servers>> {
    let settings = Arc::new(Settings::new(&address, options)?);
    let servers = match address.at {
        At::One(endpoint) => single::Single::open(endpoint, settings),
        At::Sentinels {
            hosts,
            master,
            login,
        } => cluster::Cluster::behind(hosts, master, login, settings),
        At::Cluster { hosts } => cluster::Cluster::open(hosts, settings),
    };
    servers.map_err(|failure| Error::InvalidUrl {
        url: address.shown,
        reason: failure.cause().to_string(),
    })
}
