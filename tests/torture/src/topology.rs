//! Where the locks of a run are.

use std::env;
use std::time::Duration;

/// Where the locks of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server of Redis.
    Single,
    /// A master and two replicas, which the driver promotes.
    Replicas,
    /// The same with three sentinels.
    Sentinel,
    /// Three masters with a replica each.
    Cluster,
    /// Three members of etcd.
    Etcd,
    /// Three members of ZooKeeper.
    ZooKeeper,
    /// A directory, and no server.
    File,
}

impl Topology {
    pub(crate) const ALL: [Topology; 7] = [
        Topology::Single,
        Topology::Replicas,
        Topology::Sentinel,
        Topology::Cluster,
        Topology::Etcd,
        Topology::ZooKeeper,
        Topology::File,
    ];

    /// What `TORTURE_TOPOLOGY` names.
    pub(crate) fn chosen() -> Option<Self> {
        let name = env::var("TORTURE_TOPOLOGY").ok()?;
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        let names = Self::ALL.map(Self::name).join(", ");
        Some(found.unwrap_or_else(|| panic!("TORTURE_TOPOLOGY is none of {names}")))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Topology::Single => "single",
            Topology::Replicas => "replicas",
            Topology::Sentinel => "sentinel",
            Topology::Cluster => "cluster",
            Topology::Etcd => "etcd",
            Topology::ZooKeeper => "zookeeper",
            Topology::File => "file",
        }
    }

    /// How long leases last. Where masters are replaced, some are to outlive that.
    pub(crate) fn ttl(self) -> Duration {
        Duration::from_millis(match self {
            Topology::Single | Topology::File => 500,
            Topology::Replicas | Topology::Sentinel | Topology::Cluster => 800,
            // Ten ticks at least, twenty at most.
            Topology::ZooKeeper => 1_500,
            // Whole seconds, and an election is over before.
            Topology::Etcd => 2_000,
        })
    }

    /// For how long processes wait for an answer.
    pub(crate) fn io_timeout(self) -> Duration {
        // A commit of several takes longer.
        let is_slow = matches!(self, Topology::Etcd | Topology::ZooKeeper);
        Duration::from_millis(if is_slow { 300 } else { 150 })
    }
}
