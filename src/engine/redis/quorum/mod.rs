//! Locks in several independent Redis servers, of which a majority decides.
//!
//! Each server has the keys of `lua/` as a single one has, and its scripts. An owner has a lock when a majority has
//! granted it, at once, and the line's server is among those. It uses all that the Redis engine has for one server.
//!
//! | file | |
//! |---|---|
//! | `wait.rs` | how an owner comes to a lock: asks all, stands in one queue, makes one token of several |
//! | `leases.rs` | what is done with a lease, by a majority |
//! | `operators.rs` | what operators see and do |
//! | `round.rs` | commands to several servers at once |
//! | `nodes.rs`, `shared.rs` | which of them answer, and their clocks; and what all calls share |
//! | `voter.rs` | since when a server votes, and its clock |
//!
//! # Why there is one holder
//!
//! Two majorities have a server in common, which has granted the lock to one owner at a time. A lease is valid from
//! before the first byte was sent of the round in which the majority granted or renewed it, so each of those servers
//! has it for at least as long. A server that was started anew may have lost what it granted. It grants nothing until
//! `rejoin` has passed since then, and no lease is longer than that.
//!
//! # Order
//!
//! The *line's server* is the first of the URL that answers. Waiters stand in its queue alone, and a grant without it
//! is none: so nobody takes the others in passing. It lets in the next as a single server does, by the release itself,
//! which reaches the others first. Whoever is let in there asks all of them. If it fails, waiters go on in the queue of
//! the next server, in the order in which they come to it: order is lost then, and nothing else.
//!
//! # Tokens
//!
//! A client says in its question what the token is no smaller than, by the largest clock and token that it has seen, so
//! that all servers give the same. If they don't, because one has a larger counter, the largest is written to a
//! majority before the grant is reported. So the next majority has a server with that counter, and its token is larger.

use std::sync::{Arc, Weak};
use std::time::Duration;

use self::nodes::{Node, Nodes};
use self::{shared::Quorum, wait::QuorumWait};
use super::server::Server;
use super::servers::greeting::{check, greet};
use super::servers::heard::{ask_all, worse};
use super::settings::{Address, At, Kind, Settings};
use super::{clock_skew, failure::Failure};
use crate::base::{
    Clock, Deadline, Error, Finding, Holder, Inspection, Key, Namespace, Options, Result,
};
use crate::engine::net::address::Endpoint;
use crate::engine::{
    Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait,
};

mod leases;
mod nodes;
mod operators;
mod round;
mod shared;
pub(super) mod voter;
mod wait;

#[derive(Debug)]
pub(super) struct QuorumEngine(Arc<Quorum>);

/// Connects to all servers, of which a majority must answer, and none may be of another kind.
pub(super) fn open(
    address: &Address,
    options: &Options,
    clock: Arc<dyn Clock>,
) -> Result<QuorumEngine> {
    let At::Quorum { hosts } = &address.at else {
        return Err(invalid(address, "it isn't a quorum"));
    };
    let settings = Settings::new(address, options)?;
    if settings.replicas.is_some() {
        return Err(invalid(
            address,
            "a quorum has no `min_replicas`: leave it out",
        ));
    }
    // Without one its servers lose nothing when they are started anew.
    if options.ttl > settings.rejoin && !settings.rejoin.is_zero() {
        return Err(Error::InvalidOption {
            option: "ttl",
            reason: format!(
                "{:?} is longer than `rejoin`, {:?}, the time that a restarted server doesn't vote: set ?rejoin= in \
                 the URLs of all clients",
                options.ttl, settings.rejoin
            ),
        });
    }
    let nodes = hosts.iter().map(|host| {
        let settings = Arc::new(settings.after_fork());
        let server = Server::new(Endpoint::Tcp(host.clone()), settings);
        let server = server.map_err(|failure| invalid(address, &failure.to_string()))?;
        Ok(Node::new(server))
    });
    let nodes = Nodes::new(nodes.collect::<Result<_>>()?);
    greet_majority(&nodes, &settings)?;
    let skew = clock_skew(address, options)?;
    Ok(QuorumEngine(Arc::new(Quorum::new(nodes, skew, clock))))
}

fn invalid(address: &Address, reason: &str) -> Error {
    Error::InvalidUrl {
        url: address.shown.clone(),
        reason: reason.to_owned(),
    }
}

/// For how long those may take to answer that are left when a majority has.
const OTHERS: Duration = Duration::from_millis(100);

/// Finds out whether a majority lets us in, and whether each that answers is a server that decides for itself.
fn greet_majority(nodes: &Nodes, settings: &Settings) -> Result<()> {
    let servers: Vec<_> = nodes.all.iter().map(|node| node.server.clone()).collect();
    let deadline = Deadline::after(settings.connect_timeout);
    let answers = ask_all(&servers, &deadline, |server, deadline| {
        Ok((server.clone(), greet(server, deadline)?))
    });
    let (mut greeted, mut failed) = (0, None);
    let mut until = deadline.clone();
    while let Some(answer) = answers.next(&until) {
        match answer {
            Ok((server, role)) => {
                check(role, &server, Kind::Quorum)?;
                if let Some((micros, then)) = server.voter().map(|voter| voter.clock()) {
                    nodes.saw(micros, then);
                }
                greeted += 1;
                if greeted == nodes.majority() {
                    until = deadline.within(OTHERS);
                }
            }
            Err(failure) => failed = worse(failed, failure),
        }
    }
    if greeted >= nodes.majority() {
        return Ok(());
    }
    let silent = || Failure::TimedOut("too few of its servers answered".into());
    let failure = failed.unwrap_or_else(silent);
    Err(nodes.all[0].scripts.error(None, failure))
}

impl Engine for QuorumEngine {
    fn endpoint(&self) -> &str {
        self.0.scripts().endpoint()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            is_split: true,
            only_exclusive: true,
            clock_skew: self.0.clock_skew,
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(QuorumWait::new(self.0.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        self.0.change(request, change, deadline)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.0.inbox.tell_revocations(to);
    }

    fn diagnose(
        &self,
        namespace: &Namespace,
        options: &Options,
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        self.0.diagnose((namespace, options), deadline)
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let (nodes, clock) = (self.0.nodes.after_fork(), self.0.clock.clone());
        let forked = Quorum::new(nodes, self.0.clock_skew, clock);
        Some(Arc::new(QuorumEngine(Arc::new(forked))))
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        self.0.inspect(key, deadline)
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        self.0.list(namespace, prefix, cursor, deadline)
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        self.0.break_lock(key, deadline)
    }
}
