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

use std::sync::Arc;
use std::time::Duration;

use super::address::{Address, At};
use super::failure::Failure;
use super::script::Command;
use super::server::{Answer, Manner, Server};
use super::settings::{Kind, Settings};
use crate::base::clock::Deadline;
use crate::base::error::{Error, Result};
use crate::base::options::Options;
use crate::engine::Unanswered;
use crate::engine::net::address::Endpoint;
use crate::engine::net::limits::CANCEL_LATENESS;

mod advice;
pub(super) mod ask_all;
mod cluster;
mod masters;
pub(super) mod node_lines;
mod sentinel;
pub(super) mod slots;
mod watch;

/// The servers of a URL. Look-ups end with it.
#[derive(Debug)]
pub(super) enum Servers {
    /// It has all names, and is never looked up.
    One(Arc<Server>),
    Several(Arc<cluster::Nodes>),
}

impl Servers {
    /// The servers of an address. Nothing is sent yet.
    pub(super) fn new(address: Address, options: &Options) -> Result<Self> {
        let settings = Arc::new(Settings::new(&address, options)?);
        let servers = match address.at {
            At::One(endpoint) => Servers::one(endpoint, settings),
            At::Sentinels {
                hosts,
                master,
                login,
            } => cluster::Nodes::behind(hosts, master, login, settings).map(Servers::several),
            At::Cluster { hosts } => cluster::Nodes::open(hosts, settings).map(Servers::several),
        };
        servers.map_err(|failure| Error::InvalidUrl {
            url: address.shown,
            reason: failure.cause().to_string(),
        })
    }

    fn one(endpoint: Endpoint, settings: Arc<Settings>) -> Result<Self, Failure> {
        Ok(Servers::One(Arc::new(Server::new(endpoint, settings)?)))
    }

    fn several(nodes: cluster::Nodes) -> Self {
        Servers::Several(Arc::new(nodes))
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        let settings = Arc::new(self.settings().after_fork());
        match self {
            Servers::One(server) => Servers::One(Arc::new(server.after_fork(settings))),
            Servers::Several(nodes) => Servers::several(nodes.after_fork(settings)),
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        match self {
            Servers::One(server) => server.settings(),
            Servers::Several(nodes) => &nodes.settings,
        }
    }

    /// Finds out whether there is a server that lets us in, and whether it is what the URL says.
    pub(super) fn greet(&self) -> Result<(), Refused> {
        match self {
            Servers::One(server) => {
                let role = server.greet()?;
                advice::check(role, server, Kind::Single).map_err(Refused::Error)
            }
            Servers::Several(nodes) => nodes.greet(),
        }
    }

    /// Sends a command to the server of a name, and gives its answer by `deadline`. It may be carried out twice.
    pub(super) fn call(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        match self {
            Servers::One(server) => server.call(command, Manner::Plain, deadline),
            Servers::Several(nodes) => nodes.call(route, (command, false), deadline),
        }
    }

    /// Sends a command that mustn't be carried out twice: never again after it may have reached a server.
    pub(super) fn call_once(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        match self {
            Servers::One(server) => server.call_once(command, Manner::Plain, deadline),
            Servers::Several(nodes) => nodes.call(route, (command, true), deadline),
        }
    }

    /// The server of a name, if it is known without asking.
    pub(super) fn known(&self, route: Route<'_>) -> Option<Arc<Server>> {
        match self {
            Servers::One(server) => Some(server.clone()),
            Servers::Several(nodes) => nodes.master(nodes.slot(route.key)),
        }
    }

    /// Whether another server may have what the server of a name has no more, or not yet.
    pub(super) fn is_on_its_way(&self, route: Route<'_>) -> bool {
        match self {
            Servers::One(_) => false,
            Servers::Several(nodes) => nodes.is_on_its_way(route),
        }
    }

    /// All servers that have locks.
    pub(super) fn all(&self, deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure> {
        match self {
            Servers::One(server) => Ok(vec![server.clone()]),
            Servers::Several(nodes) => nodes.all(deadline),
        }
    }

    /// Servers without locks on which a failover depends, as far as they are known: sentinels, replicas of a cluster.
    pub(super) fn without_locks(&self) -> Vec<Arc<Server>> {
        match self {
            Servers::One(_) => Vec::new(),
            Servers::Several(nodes) => nodes.without_locks(),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Servers::Several(nodes) = self {
            nodes.close();
        }
    }
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
