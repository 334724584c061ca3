//! Which servers a run is against, or that there is none.

use std::env;
use std::ops::RangeInclusive;
use std::time::Duration;

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
    /// Three members of etcd.
    Etcd,
    /// Three members of ZooKeeper.
    ZooKeeper,
    /// A directory, and no server.
    File,
}

/// What happens to processes whose locks live in a directory, beside the faults of a directory.
const OF_PROCESSES: [&str; 14] = [
    "stop holder",
    "stop waiter",
    "stop holder past ttl",
    "kill holder",
    "kill waiter",
    "kill releasing",
    "kill passing",
    "close",
    "break",
    "stop holder and break",
    "stop program",
    "kill program",
    "kill watchdog",
    "threads exhausted",
];

impl Topology {
    const ALL: [Topology; 7] = [
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

    /// Whether a fault can be fired at such servers.
    pub(crate) fn has(self, kind: &Kind) -> bool {
        if self == Topology::File || kind.is_of_files() {
            let is_there = kind.is_of_files() || OF_PROCESSES.contains(&kind.name);
            return self == Topology::File && is_there;
        }
        match kind.name {
            "compaction" => return self == Topology::Etcd,
            "lease ended" => return self.elects(),
            _ if kind.is_of_members() => return self.elects(),
            name if self.elects() => return kind.moves == Moves::None && !is_of_redis(name),
            _ => {}
        }
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
            // Each of its names is on a slot of its own, and asked for as a single one.
            "lose reply to acquire several" => self != Topology::Cluster,
            name => is_single || !name.starts_with("server clock "),
        }
    }
}

/// Whether only servers of Redis can be hit so.
fn is_of_redis(name: &str) -> bool {
    const OTHERS: [&str; 17] = [
        "stop waiter and delay grants",
        "lose reply to downgrade",
        "lose reply to acquire several",
        "stop server",
        "restart server with aof",
        "restart server without aof",
        "script flush",
        "maxmemory",
        "busy script",
        "acl revoked",
        "flushall",
        "evict",
        "fail over to a stale replica",
        "delete counter",
        "server clock forward",
        "server clock back",
        "client pause",
    ];
    name.starts_with("client kill ") || OTHERS.contains(&name)
}
