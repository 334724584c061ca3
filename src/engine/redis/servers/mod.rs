//! The servers of a URL, and which of them has a name.
//!
//! | URL | the server of a name | found out |
//! |---|---|---|
//! | `redis://` | the only one | |
//! | `redis+sentinel://` | the master, the same for all names | by asking all sentinels |
//! | `redis+cluster://` | the master of the name's slot | by asking nodes, and by their redirections |
//!
//! It uses `server` and `round`. What always holds here: all that is needed to find a server is done by the deadline of
//! the call, and a command is sent to another server only where that is harmless: it was refused, or its script makes
//! it so.
//!
//! A set behind Sentinel is a cluster of one slot. Only who is asked differs, and what the answers say.
//!
//! | file | |
//! |---|---|
//! | `topology.rs` | asking several at once who has which slot, at most once in 100 ms, and waiting for it |
//! | `map.rs` | which server has which slot, as far as it is known |
//! | `heard.rs` | what was said in one look-up, and when that is enough |
//! | `nodes.rs` | which nodes of a cluster are asked |
//! | `view.rs`, `sentinel.rs` | what a node says, or a sentinel |
//! | `call.rs` | a command on its way from server to server |
//! | `greeting.rs` | what is at the addresses of the URL |
//!
//! A slot is in one of these states, as this process knows it:
//!
//! | state | a call | left when |
//! |---|---|---|
//! | nobody's | looks up, and fails if it stays so | a look-up finds its master |
//! | a node's | goes there | that node sends it elsewhere: another node's; a look-up says so: another node's, or nobody's |
//! | on its way: its node sends some commands to another | goes to the other with ASKING, this once | the node says MOVED: the other's; or it has all keys again |
//! | on its way, and some of its keys are at either | is asked for again, within its deadline | the same |
//! | a node's, while another takes it over: the owner forgot that it goes | asks both, if it takes a lock | the other says that it doesn't |
//!
//! What always holds: no lock is held during I/O, and nobody waits past their deadline for another's look-up; there is
//! one [`Server`] for each address; without trouble a call takes one look into the map and not a round trip more than
//! on a single server.

use std::sync::Arc;

pub(super) use self::greeting::Refused;
use self::sentinel::{Ask, Sentinels};
use self::{nodes::Nodes, topology::Topology};
use super::failure::Failure;
use super::script::{Command, Route};
use super::server::{Answer, Manner, Server};
use super::settings::{Address, At, Settings};
use crate::base::{Deadline, Error, Options, Result};
use crate::engine::{Failed, net::address::Endpoint};

mod call;
pub(super) mod greeting;
pub(super) mod heard;
mod map;
mod nodes;
mod sentinel;
mod topology;
pub(super) mod view;

/// The servers of a URL. Look-ups end with it.
#[derive(Debug)]
pub(super) enum Servers {
    /// It has all names, and is never looked up.
    One(Arc<Server>),
    Several(Arc<Topology>),
}

impl Servers {
    /// The servers of an address. Nothing is sent yet.
    pub(super) fn new(address: Address, options: &Options) -> Result<Self> {
        let settings = Arc::new(Settings::new(&address, options)?);
        Servers::at(address.at, settings).map_err(|failure| Error::InvalidUrl {
            url: address.shown,
            reason: failure.cause().to_string(),
        })
    }

    /// Fails if a host can have no certificate.
    fn at(at: At, settings: Arc<Settings>) -> Result<Self, Failure> {
        let ask = match at {
            At::One(endpoint) => {
                return Ok(Servers::One(Arc::new(Server::new(endpoint, settings)?)));
            }
            At::Sentinels {
                hosts,
                master,
                login,
            } => Ask::Sentinels(Sentinels::new(hosts, master, login, &settings)?),
            At::Quorum { .. } => {
                return Err(Failure::Other("its servers aren't one place".into()));
            }
            At::Cluster { hosts } => {
                for host in &hosts {
                    Server::new(Endpoint::Tcp(host.clone()), settings.clone())?;
                }
                Ask::Nodes(Nodes::new(hosts))
            }
        };
        Ok(Servers::Several(Topology::new(settings, ask)))
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        let settings = Arc::new(self.settings().after_fork());
        match self {
            Servers::One(server) => Servers::One(Arc::new(server.after_fork(settings))),
            Servers::Several(topology) => Servers::Several(topology.after_fork(settings)),
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        match self {
            Servers::One(server) => server.settings(),
            Servers::Several(topology) => &topology.settings,
        }
    }

    /// Finds out whether there is a server that lets us in, and whether it is what the URL says.
    pub(super) fn greet(&self) -> Result<(), Refused> {
        match self {
            Servers::One(server) => greeting::greet_one(server),
            Servers::Several(topology) => topology.greet(),
        }
    }

    /// Sends a command to the server of a name, and gives its answer by `deadline`.
    pub(super) fn call(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Failed<Failure>> {
        match self {
            Servers::One(server) => server.call(command, Manner::Plain, deadline),
            Servers::Several(topology) => call::run(topology, route, command, deadline),
        }
    }

    /// The server of a name, if it is known without asking.
    pub(super) fn known(&self, route: Route<'_>) -> Option<Arc<Server>> {
        match self {
            Servers::One(server) => Some(server.clone()),
            Servers::Several(topology) => topology.master(topology.slot(route.key)),
        }
    }

    /// Whether another server may have what the server of a name has no more, or not yet.
    pub(super) fn is_on_its_way(&self, route: Route<'_>) -> bool {
        match self {
            Servers::One(_) => false,
            Servers::Several(topology) => topology.is_on_its_way(route.key),
        }
    }

    /// All servers that have locks.
    pub(super) fn all(&self, deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure> {
        match self {
            Servers::One(server) => Ok(vec![server.clone()]),
            Servers::Several(topology) => topology.all(deadline),
        }
    }

    /// Servers without locks on which a failover depends, as far as they are known: sentinels, replicas of a cluster.
    pub(super) fn without_locks(&self) -> Vec<Arc<Server>> {
        match self {
            Servers::One(_) => Vec::new(),
            Servers::Several(topology) => topology.without_locks(),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Servers::Several(topology) = self {
            topology.closed.set();
        }
    }
}
