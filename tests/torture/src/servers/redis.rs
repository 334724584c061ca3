//! Servers of Redis, of which others may take the places of masters.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::topology::Topology;
use support::{Cluster, Member, RedisServer, Replicated, SentinelSet, Setup, slot_of, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);
/// A server that is late on a busy machine isn't replaced for it.
const DOWN_AFTER: Duration = Duration::from_millis(1_500);
const NODES: usize = 6;

/// Servers of Redis.
#[derive(Debug)]
pub(crate) enum Set {
    /// One, or several, with the number of the one that is the master.
    Replicas(Replicated, AtomicUsize),
    Sentinel(SentinelSet),
    Cluster(Cluster),
}

/// How a master is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It agrees, unless nobody asks it.
    Asked,
    /// It is killed, and starts again later.
    Killed,
    /// It is stopped, and goes on later, as the master that it was.
    Stopped,
}

impl Set {
    pub(super) fn start(topology: Topology) -> Self {
        let setup = Setup::new()
            .config("repl-diskless-sync", "yes")
            .config("repl-diskless-sync-delay", "0")
            // A server that starts again knows nothing, but what it has appended.
            .config("rdb-del-sync-files", "yes")
            .down_after(DOWN_AFTER)
            .node_timeout(DOWN_AFTER);
        // What was written survives the server, and nobody waits for the disk.
        let appending = |setup: Setup| {
            let setup = setup.config("appendonly", "yes");
            setup.config("appendfsync", "no")
        };
        match topology {
            Topology::Sentinel => Set::Sentinel(setup.sentinels()),
            Topology::Cluster => Set::Cluster(setup.cluster()),
            Topology::Replicas => Set::Replicas(setup.replicated(2), AtomicUsize::new(0)),
            _ => Set::Replicas(appending(setup).replicated(0), AtomicUsize::new(0)),
        }
    }

    pub(super) fn url(&self) -> String {
        let url = match self {
            Set::Replicas(set, master) => set.url(master.load(Relaxed)),
            Set::Sentinel(set) => set.url(),
            Set::Cluster(set) => set.url(),
        };
        url + &self.parameters()
    }

    /// Each replica has every lease, so no failover may break a rule.
    pub(super) fn parameters(&self) -> String {
        let replicas = match self {
            Set::Cluster(_) => 1,
            _ => self.members().len() - 1,
        };
        match replicas {
            0 => String::new(),
            _ => format!("?min_replicas={replicas}"),
        }
    }

    fn members(&self) -> Vec<&Member> {
        match self {
            Set::Replicas(set, _) => set.members().iter().collect(),
            Set::Sentinel(set) => set.members().iter().collect(),
            Set::Cluster(set) => (0..NODES).map(|index| set.node(index)).collect(),
        }
    }

    pub(crate) fn masters(&self) -> Vec<&RedisServer> {
        let indices = match self {
            Set::Replicas(_, master) => vec![master.load(Relaxed)],
            Set::Sentinel(set) => vec![set.master()],
            Set::Cluster(set) => set.masters(),
        };
        let members = self.members();
        let masters = indices.into_iter();
        masters
            .map(|index| -> &RedisServer { members[index] })
            .collect()
    }

    /// Has another server take the place of the master of this name. Calls `meanwhile` with it before the old one is
    /// back, and returns when all servers are what they were to each other.
    pub(crate) fn fail_over(&self, name: &str, how: How, meanwhile: impl FnOnce(&RedisServer)) {
        let key = format!("{{crosslock:{name}}}");
        let old = self.master_of(&key);
        let server = self.members()[old];
        match how {
            How::Asked => {}
            How::Killed => server.kill(),
            How::Stopped => server.stop(),
        }
        let new = self.replace(old, &key, how == How::Asked);
        meanwhile(self.members()[new]);
        match how {
            How::Asked => {}
            How::Killed => server.restart(),
            How::Stopped => server.cont(),
        }
        self.settle();
    }

    fn master_of(&self, key: &str) -> usize {
        match self {
            Set::Replicas(_, master) => master.load(Relaxed),
            Set::Sentinel(set) => set.master(),
            Set::Cluster(set) => {
                let mut owner = None;
                wait_until("a node to have the slot", PATIENCE, || {
                    owner = set.owner_of_slot(slot_of(key));
                    owner.is_some()
                });
                owner.expect("it was there")
            }
        }
    }

    /// Waits until another has the place of `old`, which is asked, or gone.
    fn replace(&self, old: usize, key: &str, is_asked: bool) -> usize {
        match self {
            Set::Replicas(set, master) => {
                let new = (old + 1) % set.members().len();
                set.promote(new);
                master.store(new, Relaxed);
                new
            }
            Set::Sentinel(set) if is_asked => set.failover(),
            Set::Sentinel(set) => set.wait_for_other_master(old),
            Set::Cluster(set) if is_asked => {
                let mut replicas = Vec::new();
                wait_until("a replica", PATIENCE, || {
                    replicas = set.replicas_of(old);
                    !replicas.is_empty()
                });
                set.failover(replicas[0]);
                replicas[0]
            }
            Set::Cluster(set) => set.wait_for_other_owner(key, old),
        }
    }

    /// Waits until all servers run, and replicas have what their masters have.
    fn settle(&self) {
        match self {
            Set::Replicas(set, master) => {
                let master = master.load(Relaxed);
                let others = (0..set.members().len()).filter(|other| *other != master);
                others.for_each(|other| set.follow(other, master));
                set.wait_until_caught_up();
            }
            Set::Sentinel(set) => set.wait_until_settled(),
            Set::Cluster(set) => {
                set.wait_until_ok();
                let confirmed = |one: &RedisServer| one.is_confirmed_by(1).unwrap_or(false);
                wait_until("the replicas to confirm", PATIENCE, || {
                    self.masters().into_iter().all(confirmed)
                });
            }
        }
    }
}
