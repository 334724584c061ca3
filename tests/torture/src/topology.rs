//! Which servers a run is against, or that there is none.

use std::env;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::kinds::Class;

/// How the servers of a run belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server.
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
        let found = Self::named(&name);
        let names = Self::ALL.map(Self::name).join(", ");
        Some(found.unwrap_or_else(|| panic!("TORTURE_TOPOLOGY is none of {names}")))
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
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

    /// From which the ttl of a run is chosen, in milliseconds. Where masters are replaced, some leases are to outlive
    /// that.
    pub(crate) fn ttls(self) -> RangeInclusive<u64> {
        match self {
            Topology::Single | Topology::File => 300..=500,
            // Whole seconds, and an election is over before.
            Topology::Etcd => 2_000..=2_000,
            // Ten ticks at least, twenty at most.
            Topology::ZooKeeper => 1_000..=1_500,
            _ => 500..=900,
        }
    }

    /// Whether a majority of members keeps the locks, and elects who leads.
    pub(crate) fn elects(self) -> bool {
        matches!(self, Topology::Etcd | Topology::ZooKeeper)
    }

    /// For how long processes wait for an answer.
    pub(crate) fn io_timeout(self) -> Duration {
        // A commit of several takes longer.
        Duration::from_millis(if self.elects() { 300 } else { 150 })
    }

    /// How many replicas each master has.
    pub(crate) fn replicas(self) -> usize {
        match self {
            Topology::Single | Topology::Etcd | Topology::ZooKeeper | Topology::File => 0,
            Topology::Replicas | Topology::Sentinel => 2,
            Topology::Cluster => 1,
        }
    }

    /// Whether servers announce their own addresses: then proxies stand in front of servers, and not of workers.
    pub(crate) fn announces(self) -> bool {
        matches!(self, Topology::Sentinel | Topology::Cluster)
    }

    /// What the URLs of a run end with: where no fault may break a rule, each replica has every lease.
    pub(crate) fn parameters(self, class: Class) -> String {
        match (self.replicas(), class) {
            (0, _) | (_, Class::Unsafe) => String::new(),
            (replicas, Class::Safe) => format!("?min_replicas={replicas}"),
        }
    }
}
