//! Which servers a run is against.

use std::env;
use std::ops::RangeInclusive;

use super::kinds::{Class, Kind, Moves};

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
}

impl Topology {
    const ALL: [Topology; 4] = [
        Topology::Single,
        Topology::Replicas,
        Topology::Sentinel,
        Topology::Cluster,
    ];

    /// What `TORTURE_TOPOLOGY` names.
    pub(crate) fn chosen() -> Option<Self> {
        let name = env::var("TORTURE_TOPOLOGY").ok()?;
        let mut all = Self::ALL.into_iter();
        let found = all.find(|one| one.name() == name);
        Some(found.expect("TORTURE_TOPOLOGY: single, replicas, sentinel or cluster"))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Topology::Single => "single",
            Topology::Replicas => "replicas",
            Topology::Sentinel => "sentinel",
            Topology::Cluster => "cluster",
        }
    }

    /// From which the ttl of a run is chosen, in milliseconds. Where masters are replaced, some leases are to outlive that.
    pub(crate) fn ttls(self) -> RangeInclusive<u64> {
        match self {
            Topology::Single => 300..=500,
            _ => 500..=900,
        }
    }

    /// How many replicas each master has.
    pub(crate) fn replicas(self) -> usize {
        match self {
            Topology::Single => 0,
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

    /// Whether a fault can be fired at such servers.
    pub(crate) fn has(self, kind: &Kind) -> bool {
        let is_single = self == Topology::Single;
        match kind.name {
            _ if kind.moves == Moves::Slots => self == Topology::Cluster,
            // It takes proxies between servers.
            "master cut off" => self.announces(),
            _ if kind.moves == Moves::Masters => !is_single,
            // A server that comes back late has been replaced; it is killed and stopped for longer instead.
            "restart server with aof" => !self.announces(),
            // It takes a proxy of its own.
            "stop waiter and delay grants" | "cut program off" => !self.announces(),
            "fail over to a stale replica" => is_single,
            name => is_single || !name.starts_with("server clock "),
        }
    }
}
