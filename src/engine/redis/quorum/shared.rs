//! What all calls share: the servers, and how one of them is waited at.

use std::sync::{Arc, atomic::AtomicU64};
use std::time::Duration;

use super::{node::Node, voter::TokenClock};
use crate::base::{Cancel, Clock};
use crate::engine::contended::Contended;
use crate::engine::redis::{lock_scripts::LockScripts, waiter::WaitDeps};

#[derive(Debug)]
pub(super) struct Quorum {
    /// In the order of the URL.
    pub(super) nodes: Vec<Arc<Node>>,
    /// With the scripts of the first server, which are the same for all.
    pub(super) deps: WaitDeps,
    /// In these the line's server is asked before the others.
    pub(super) contended: Contended,
    pub(super) tokens: TokenClock,
    /// The largest token of a lease that a server granted again.
    pub(super) taken_again: AtomicU64,
    /// Set when nothing of it is used any more.
    pub(super) closed: Cancel,
}

impl Quorum {
    pub(super) fn new(nodes: Vec<Arc<Node>>, clock_skew: Duration, clock: Arc<dyn Clock>) -> Self {
        let scripts = nodes[0].scripts.clone();
        Quorum {
            nodes,
            deps: WaitDeps::new(scripts, clock_skew, clock),
            contended: Contended::default(),
            tokens: TokenClock::default(),
            taken_again: AtomicU64::default(),
            closed: Cancel::default(),
        }
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        let nodes = self.nodes.iter().map(|node| node.after_fork()).collect();
        let mut forked = Quorum::new(nodes, self.deps.clock_skew, self.deps.clock.clone());
        forked.tokens = self.tokens.clone();
        forked
    }

    pub(super) fn scripts(&self) -> &LockScripts {
        &self.deps.scripts
    }

    /// How a waiter waits at one of the servers.
    pub(super) fn deps_at(&self, at: usize) -> WaitDeps {
        let mut deps = self.deps.anew();
        deps.scripts = self.nodes[at].scripts.clone();
        deps
    }

    /// How many servers are a majority.
    pub(super) fn majority(&self) -> usize {
        self.nodes.len() / 2 + 1
    }

    /// The first that is up: waiters stand in its queue. Where none is, the first.
    pub(super) fn line(&self) -> usize {
        let first = self.nodes.iter().position(|node| node.is_up());
        first.unwrap_or(0)
    }
}

impl Drop for Quorum {
    fn drop(&mut self) {
        self.closed.set();
    }
}
