//! What all calls share: the servers, and how one of them is waited at.

use std::sync::Arc;
use std::time::Duration;

use super::nodes::Nodes;
use crate::base::{Clock, Error, Key};
use crate::engine::contended::Contended;
use crate::engine::redis::lock_scripts::LockScripts;
use crate::engine::redis::{failure::Failure, inbox::Inbox, waiter::WaitDeps};

/// What all calls share.
#[derive(Debug)]
pub(super) struct Quorum {
    pub(super) nodes: Nodes,
    pub(super) inbox: Arc<Inbox>,
    /// In these the line's server is asked before the others.
    pub(super) contended: Contended,
    pub(super) clock_skew: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

impl Quorum {
    pub(super) fn new(nodes: Nodes, clock_skew: Duration, clock: Arc<dyn Clock>) -> Self {
        Quorum {
            nodes,
            inbox: Arc::new(Inbox::new()),
            contended: Contended::default(),
            clock_skew,
            clock,
        }
    }

    /// What builds the scripts, which are the same for all servers.
    pub(super) fn scripts(&self) -> &Arc<LockScripts> {
        &self.nodes.all[0].scripts
    }

    /// How a waiter waits at one of the servers.
    pub(super) fn wait_deps(&self, at: usize) -> WaitDeps {
        WaitDeps {
            scripts: self.nodes.all[at].scripts.clone(),
            inbox: self.inbox.clone(),
            clock: self.clock.clone(),
            clock_skew: self.clock_skew,
            bell: Arc::default(),
        }
    }

    /// The error of a call that too few servers have answered.
    pub(super) fn too_few(&self, key: &Key, answered: usize, first: Option<Failure>) -> Error {
        if let Some(failure @ (Failure::Denied(_) | Failure::Conflict(_) | Failure::Other(_))) =
            first
        {
            return self.scripts().error(Some(key), failure);
        }
        let (all, why) = (
            self.nodes.all.len(),
            first.map(|failure| failure.to_string()),
        );
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        let cause = format!("{answered} of {all} servers answered, which isn't a majority{why}");
        self.scripts().unavailable(key, cause)
    }
}
