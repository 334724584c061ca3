//! Locks in several independent Redis servers, of which a majority decides.
//!
//! Each server has the keys of `lua/` as a single one has, and its scripts. An owner has a lock when a majority has
//! granted it, at once, and the line's server is among those. It uses all that the Redis engine has for one server.
//!
//! | file | |
//! |---|---|
//! | `wait.rs` | how an owner comes to a lock: asks all, stands in one queue, makes one token of several |
//! | `leases.rs` | what is done with a lease, by a majority |
//! | `operators.rs` | the engine, and what operators see and do |
//! | `poll.rs`, `votes.rs` | a question to all, and when a majority has said yes or no |
//! | `node.rs`, `shared.rs` | one of the servers; and what all calls share |
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

use std::sync::Arc;

use self::votes::{Vote, Votes};
use self::{node::Node, operators::QuorumEngine, shared::Quorum};
use super::clock_skew;
use super::server::{Answer, Server};
use super::servers::greeting::{Role, check};
use super::settings::{Address, Kind, Settings};
use crate::base::{Clock, Deadline, Error, Options, Result};
use crate::engine::net::address::{Endpoint, HostPort};
use crate::engine::{Failed, url::invalid_url};

mod leases;
mod node;
mod operators;
mod poll;
mod shared;
pub(super) mod voter;
mod votes;
mod wait;

/// Connects to all servers, of which a majority must answer, and none may be of another kind.
pub(super) fn open(
    address: &Address,
    hosts: &[HostPort],
    options: &Options,
    clock: Arc<dyn Clock>,
) -> Result<QuorumEngine> {
    let settings = Settings::new(address, options)?;
    if settings.replicas.is_some() {
        let reason = "a quorum has no `min_replicas`: leave it out";
        return Err(invalid_url(&address.shown, reason));
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
        let server = server.map_err(|failure| invalid_url(&address.shown, &failure.to_string()))?;
        Ok(Node::new(server))
    });
    let nodes = nodes.collect::<Result<_>>()?;
    let quorum = Quorum::new(nodes, clock_skew(address, options)?, clock);
    quorum.greet(&Deadline::after(settings.connect_timeout))?;
    Ok(QuorumEngine(Arc::new(quorum)))
}

impl Quorum {
    /// Finds out whether a majority lets us in, and whether each that answers is a server that decides for itself.
    fn greet(&self, deadline: &Deadline) -> Result<()> {
        let mut votes: Votes<_> = self.no_votes();
        let role = |reply: Answer| Ok(Ok(Role::of(&reply.value)));
        let hello = ::redis::cmd("HELLO");
        self.poll(&mut votes, &hello, deadline, role, |_| false);
        for (node, vote) in self.nodes.iter().zip(&mut votes.said) {
            match vote {
                Some(Vote::Yes(role)) => check(*role, &node.server, Kind::Quorum)?,
                // It was reached. One that doesn't know HELLO may have locks all the same.
                Some(Vote::Failed(Failed { error, sent: true })) if !error.is_of_connection() => {
                    *vote = Some(Vote::Yes(Role::Primary));
                }
                _ => {}
            }
        }
        let is_yes = votes.is_yes().then_some(());
        is_yes.ok_or_else(|| self.too_few(None, votes))
    }
}
