//! What the rules have to know of the servers that keep the locks.

use std::time::Duration;

use crate::history::ALL;
use crate::kinds::{KEPT_BY_CHILD, Kind};

/// Which servers keep the locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Engine {
    /// A counter for each name, and a queue.
    #[default]
    Redis,
    /// A line of keys, each with a lease of its own.
    Etcd,
    /// A line of nodes, which last as long as the session of their process.
    ZooKeeper,
    /// A file for each name. Leases last as long as their process.
    Files,
}

/// So many tokens above its first a lease may use in its process.
const HAND_OVERS: u64 = 1024;
/// Where tokens come from revisions, each has so many.
const TOKENS_OF_REVISION: u64 = 4096;
/// etcd looks twice a second which leases are over, and revokes them by a commit.
const ETCD_REVOKES_WITHIN: Duration = Duration::from_millis(600);
/// A session ends at a whole tick, and its last sign of life comes to the leader with a ping, each half tick: a tick is
/// 100 ms.
const SESSIONS_END_WITHIN: Duration = Duration::from_millis(200);

impl Engine {
    /// That of a topology with this name.
    pub(super) fn named(servers: &str) -> Self {
        match servers {
            "etcd" => Engine::Etcd,
            "zookeeper" => Engine::ZooKeeper,
            "file" => Engine::Files,
            _ => Engine::Redis,
        }
    }

    /// Whether owners stand in one line, and whoever is dead stays in it until its lease is over.
    pub(super) fn has_lines(self) -> bool {
        matches!(self, Engine::Etcd | Engine::ZooKeeper)
    }

    /// Whether all calls of a process wait on one connection. It is given up when one answer takes too long, and then
    /// no other comes either.
    pub(super) fn shares_connection(self) -> bool {
        self == Engine::ZooKeeper
    }

    /// Whether a lease lasts until it is released, broken, or passed on, or its process ends.
    pub(super) fn has_lasting_leases(self) -> bool {
        self == Engine::Files
    }

    /// For how long a dead owner may keep its lock.
    pub(super) fn lasts(self, ttl: Duration) -> Duration {
        if self.has_lasting_leases() {
            Duration::ZERO
        } else {
            ttl
        }
    }

    /// Whether a lease may be lost by this fault, beside a break.
    pub(super) fn may_lose(self, kind: &Kind) -> bool {
        kind.loses && !self.has_lasting_leases()
    }

    /// Whether a lock may be found abandoned because of it.
    pub(super) fn may_abandon(self, kind: &Kind) -> bool {
        kind.abandons() && (!self.has_lasting_leases() || !kind.loses)
    }

    /// Whose calls may fail because of a fault that hits this process: one that is stopped, or whose child has copies
    /// of its files, may have the file of a name locked meanwhile.
    pub(super) fn reach_of(self, kind: &Kind, process: u32) -> u32 {
        let keeps = kind.name.starts_with("stop ") || kind.name == KEPT_BY_CHILD;
        if self.has_lasting_leases() && keeps {
            ALL
        } else {
            process
        }
    }

    /// By how much a server may end a lease later than its ttl after its last renewal.
    pub(super) fn ends_leases_within(self) -> Duration {
        match self {
            Engine::Redis | Engine::Files => Duration::ZERO,
            Engine::Etcd => ETCD_REVOKES_WITHIN,
            Engine::ZooKeeper => SESSIONS_END_WITHIN,
        }
    }

    /// Whether a token may be that of a lease which has, or had, the other, and was handed over within its process
    /// since.
    pub(super) fn may_be_of_lease(self, first: u64, token: u64) -> bool {
        if self.has_lines() {
            return first / TOKENS_OF_REVISION == token / TOKENS_OF_REVISION;
        }
        is_exclusive(first) && token > first && token - first <= HAND_OVERS
    }
}

/// As `lua/README.md` has it.
fn is_exclusive(token: u64) -> bool {
    token % 4 == 1 || token % 8 == 3
}
