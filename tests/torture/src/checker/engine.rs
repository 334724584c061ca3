//! What the rules have to know of the servers that keep the locks.

use std::time::Duration;

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
}

/// So many tokens above its first a lease may use in its process.
const HAND_OVERS: u64 = 1024;
/// Where tokens come from revisions, each has so many.
const TOKENS_OF_REVISION: u64 = 4096;
/// etcd looks twice a second which leases are over, and revokes them by a commit.
const ETCD_REVOKES_WITHIN: Duration = Duration::from_millis(600);
/// A session ends at a whole tick, and its last sign of life comes to the leader with a ping, each half tick: a tick is 100 ms.
const SESSIONS_END_WITHIN: Duration = Duration::from_millis(200);

impl Engine {
    /// That of a topology with this name.
    pub(super) fn named(servers: &str) -> Self {
        match servers {
            "etcd" => Engine::Etcd,
            "zookeeper" => Engine::ZooKeeper,
            _ => Engine::Redis,
        }
    }

    /// Whether owners stand in one line, and whoever is dead stays in it until its lease is over.
    pub(super) fn has_lines(self) -> bool {
        self != Engine::Redis
    }

    /// Whether all calls of a process wait on one connection. It is given up when one answer takes too long, and then no other
    /// comes either.
    pub(super) fn shares_connection(self) -> bool {
        self == Engine::ZooKeeper
    }

    /// By how much a server may end a lease later than its ttl after its last renewal.
    pub(super) fn ends_leases_within(self) -> Duration {
        match self {
            Engine::Redis => Duration::ZERO,
            Engine::Etcd => ETCD_REVOKES_WITHIN,
            Engine::ZooKeeper => SESSIONS_END_WITHIN,
        }
    }

    /// Whether a token may be that of a lease which has, or had, the other, and was handed over within its process since.
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
