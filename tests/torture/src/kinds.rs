//! The faults that there are, whom they hit, and what each of them excuses.

use super::topology::Topology::{self, Cluster, Etcd, File, Replicas, Sentinel, Single, ZooKeeper};

/// A kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub class: Class,
    /// The servers at which it can be fired.
    pub(crate) on: &'static [Topology],
    pub(crate) whom: Whom,
    /// The errors that calls may give because of it.
    pub errors: &'static [&'static str],
    /// Whether a lease may be lost by it.
    pub loses: bool,
    pub moves: Moves,
}

/// Whom a fault hits when somebody holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The process that holds it.
    Holder,
    /// Another, which waits for it or for others.
    Waiter,
    /// Whoever is next.
    Anyone,
    /// All of them, by a server; or whoever is first.
    All,
    /// The program `crosslock`, or its watchdog.
    Program,
}

/// Which locks come to another server by a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    None,
    /// Those of some slots.
    Slots,
    /// All that a master has: a replica takes its place, and has what it was told in time.
    Masters,
}

/// What a fault may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// No rule may be broken.
    Safe,
    /// The server forgets: two may hold for a moment.
    Unsafe,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Class::Safe => "safe",
            Class::Unsafe => "unsafe",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [Class::Safe, Class::Unsafe]
            .into_iter()
            .find(|class| class.name() == name)
    }
}

const UNAVAILABLE: &[&str] = &["unavailable"];
const OUTAGE: &[&str] = &["unavailable", "lost"];
const REFUSAL: &[&str] = &["denied", "engine", "unavailable", "lost"];

const EVERYWHERE: &[Topology] = &Topology::ALL;
const SERVERS: &[Topology] = &[Single, Replicas, Sentinel, Cluster, Etcd, ZooKeeper];
const REDIS: &[Topology] = &[Single, Replicas, Sentinel, Cluster];
/// Servers of Redis that announce no addresses, so that each process has a proxy of its own.
const UNANNOUNCED: &[Topology] = &[Single, Replicas];
const SETS: &[Topology] = &[Replicas, Sentinel, Cluster];
const ELECTING: &[Topology] = &[Etcd, ZooKeeper];

const fn safe(
    name: &'static str,
    on: &'static [Topology],
    whom: Whom,
    errors: &'static [&'static str],
    loses: bool,
) -> Kind {
    Kind {
        name,
        class: Class::Safe,
        on,
        whom,
        errors,
        loses,
        moves: Moves::None,
    }
}

/// Of servers, which forget.
const fn harmful(name: &'static str, on: &'static [Topology]) -> Kind {
    Kind {
        class: Class::Unsafe,
        ..safe(name, on, Whom::All, REFUSAL, true)
    }
}

/// Of several servers. No rule may be broken by it where each replica has every lease; elsewhere they forget.
const fn moving(name: &'static str, on: &'static [Topology], moves: Moves) -> Kind {
    Kind {
        moves,
        ..safe(name, on, Whom::All, OUTAGE, true)
    }
}

/// A failover that nobody asked for.
pub const BY_ITSELF: &str = "fail over by itself";

/// The members of etcd or ZooKeeper have elected another leader, which nobody caused.
pub const ELECTION: &str = "election by itself";

/// A process is killed that has forked off a child: that has copies of its files, which keep its locks.
pub const KEPT_BY_CHILD: &str = "kill but for a child";

/// A replica takes the place of its master, and has heard nothing for a while.
pub(crate) const STALE: &str = "fail over to a stale replica";

const DISK: &[&str] = &["engine", "unavailable"];

#[rustfmt::skip]
pub const KINDS: [Kind; 62] = [
    safe("stop holder", EVERYWHERE, Whom::Holder, OUTAGE, true),
    safe("stop waiter", EVERYWHERE, Whom::Waiter, OUTAGE, true),
    safe("stop holder past ttl", EVERYWHERE, Whom::Holder, OUTAGE, true),
    safe("stop waiter and delay grants", UNANNOUNCED, Whom::Waiter, OUTAGE, true),
    safe("kill holder", EVERYWHERE, Whom::Holder, &[], false),
    safe("kill waiter", EVERYWHERE, Whom::Waiter, &[], false),
    safe("kill releasing", EVERYWHERE, Whom::Holder, &[], false),
    safe("delay", SERVERS, Whom::Holder, OUTAGE, true),
    safe("delay and kill holder", SERVERS, Whom::Holder, OUTAGE, true),
    safe("drop", SERVERS, Whom::Holder, OUTAGE, true),
    safe("black hole", SERVERS, Whom::Holder, OUTAGE, true),
    safe("truncate", SERVERS, Whom::Holder, OUTAGE, true),
    safe("half-close", SERVERS, Whom::Holder, OUTAGE, true),
    safe("lose reply to acquire", SERVERS, Whom::Anyone, UNAVAILABLE, false),
    safe("lose reply to renew", SERVERS, Whom::Holder, UNAVAILABLE, false),
    safe("lose reply to release", SERVERS, Whom::Holder, UNAVAILABLE, false),
    safe("lose reply to downgrade", REDIS, Whom::All, UNAVAILABLE, false),
    // In a cluster each name is on a slot of its own, and asked for as a single one.
    safe("lose reply to acquire several", &[Single, Replicas, Sentinel], Whom::All, UNAVAILABLE, false),
    safe("stop server", REDIS, Whom::All, OUTAGE, true),
    // Elsewhere one that comes back late has been replaced; it is killed and stopped for longer instead.
    safe("restart server with aof", UNANNOUNCED, Whom::All, OUTAGE, true),
    safe("script flush", REDIS, Whom::All, &[], false),
    safe("client kill normal", REDIS, Whom::All, UNAVAILABLE, false),
    safe("client kill pubsub", REDIS, Whom::All, &[], false),
    safe("client pause", REDIS, Whom::All, OUTAGE, true),
    safe("maxmemory", REDIS, Whom::All, OUTAGE, true),
    safe("busy script", REDIS, Whom::All, OUTAGE, true),
    safe("acl revoked", REDIS, Whom::All, REFUSAL, true),
    safe("descriptors exhausted", SERVERS, Whom::Holder, OUTAGE, true),
    // Nodes and sentinels are asked by threads, without which a locker that is opened then finds no server.
    safe("threads exhausted", EVERYWHERE, Whom::Holder, &["engine", "unavailable"], false),
    safe("kill passing", EVERYWHERE, Whom::Holder, &[], false),
    safe("close", EVERYWHERE, Whom::Holder, &[], false),
    safe("break", EVERYWHERE, Whom::All, &[], false),
    safe("stop holder and break", EVERYWHERE, Whom::Holder, OUTAGE, true),
    safe("stop program", EVERYWHERE, Whom::Program, &[], true),
    safe("kill program", EVERYWHERE, Whom::Program, &[], false),
    safe("kill watchdog", EVERYWHERE, Whom::Program, &[], false),
    safe("cut program off", &[Single, Replicas, Etcd, ZooKeeper], Whom::Program, &[], true),
    moving("slots moved", &[Cluster], Moves::Slots),
    moving("fail over", SETS, Moves::Masters),
    moving("master killed", SETS, Moves::Masters),
    moving("master stopped past failover", SETS, Moves::Masters),
    // It takes proxies between servers.
    moving("master cut off", &[Sentinel, Cluster], Moves::Masters),
    moving(BY_ITSELF, SETS, Moves::Masters),
    safe("disk full", &[File], Whom::All, DISK, false),
    safe("open files exhausted", &[File], Whom::Holder, DISK, false),
    safe(KEPT_BY_CHILD, &[File], Whom::Holder, UNAVAILABLE, false),
    // Whatever happens to members, they forget nothing.
    safe("leader killed", ELECTING, Whom::All, OUTAGE, true),
    safe("leader stopped past election", ELECTING, Whom::All, OUTAGE, true),
    safe("leader cut off", ELECTING, Whom::All, OUTAGE, true),
    safe("follower cut off", ELECTING, Whom::All, OUTAGE, true),
    safe("minority down", ELECTING, Whom::All, OUTAGE, true),
    safe("majority down", ELECTING, Whom::All, OUTAGE, true),
    safe("all restarted", ELECTING, Whom::All, OUTAGE, true),
    safe("compaction", &[Etcd], Whom::All, &[], false),
    safe(ELECTION, ELECTING, Whom::All, OUTAGE, true),
    harmful("restart server without aof", REDIS),
    harmful("flushall", REDIS),
    harmful("delete lock", SERVERS),
    harmful("lease ended", ELECTING),
    harmful("evict", REDIS),
    harmful(STALE, &[Single]),
    harmful("delete counter", REDIS),
];

impl Kind {
    /// Whether a lock may be found abandoned because of it, of any name. A reply that is lost abandons nothing.
    pub fn abandons(&self) -> bool {
        self.loses || self.name.starts_with("kill ")
    }

    /// Whether it is one of the faults of that class.
    pub fn is_of(&self, class: Class) -> bool {
        self.class == class || self.moves == Moves::Masters
    }

    /// Whether a server may forget locks by it in a run of that class.
    pub fn harms(&self, class: Class) -> bool {
        self.class == Class::Unsafe || (class == Class::Unsafe && self.moves == Moves::Masters)
    }

    /// Whether it is fired by a proxy.
    pub fn is_of_network(&self) -> bool {
        const OTHERS: [&str; 6] = [
            "drop",
            "black hole",
            "truncate",
            "half-close",
            "stop waiter and delay grants",
            "descriptors exhausted",
        ];
        let begins = |word| self.name.starts_with(word);
        begins("delay") || begins("lose reply") || OTHERS.contains(&self.name)
    }

    /// Whether it is of members that elect a leader, and forget nothing.
    pub fn is_of_members(&self) -> bool {
        self.class == Class::Safe && self.on.iter().all(|servers| servers.elects())
    }

    /// Whether somebody breaks a lock, whose name its event has.
    pub fn breaks(&self) -> bool {
        self.name.ends_with("break")
    }

    /// Whether it is one of these, which are separated by commas; every one is when none is named.
    pub fn is_among(&self, names: &str) -> bool {
        names.is_empty() || names.split(',').any(|name| name == self.name)
    }
}

/// The kind with this name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
