//! The faults that there are, and what each of them excuses.

/// A kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub class: Class,
    /// The errors that calls may give because of it.
    pub errors: &'static [&'static str],
    /// Whether a lease may be lost by it.
    pub loses: bool,
    /// Whether the server may have no counters after it, or older ones.
    pub forgets: bool,
    pub moves: Moves,
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

const fn safe(name: &'static str, errors: &'static [&'static str], loses: bool) -> Kind {
    let class = Class::Safe;
    Kind {
        name,
        class,
        errors,
        loses,
        forgets: false,
        moves: Moves::None,
    }
}

const fn harmful(name: &'static str, forgets: bool) -> Kind {
    Kind {
        name,
        class: Class::Unsafe,
        errors: REFUSAL,
        loses: true,
        forgets,
        moves: Moves::None,
    }
}

/// Of several servers. No rule may be broken by it where each replica has every lease; elsewhere they forget.
const fn moving(name: &'static str, moves: Moves) -> Kind {
    Kind {
        moves,
        ..safe(name, OUTAGE, true)
    }
}

/// A failover that nobody asked for.
pub const BY_ITSELF: &str = "fail over by itself";

/// The members of etcd or ZooKeeper have elected another leader, which nobody caused.
pub const ELECTION: &str = "election by itself";

/// What happens to members of etcd or ZooKeeper. Whatever it is, they forget nothing.
const OF_MEMBERS: [&str; 9] = [
    "leader killed",
    "leader stopped past election",
    "leader cut off",
    "follower cut off",
    "minority down",
    "majority down",
    "all restarted",
    "compaction",
    ELECTION,
];

/// What happens only where locks live in a directory.
const OF_FILES: [&str; 3] = ["disk full", "open files exhausted", KEPT_BY_CHILD];

/// A process is killed that has forked off a child: that has copies of its files, which keep its locks.
pub const KEPT_BY_CHILD: &str = "kill but for a child";

const DISK: &[&str] = &["engine", "unavailable"];

pub const KINDS: [Kind; 64] = [
    safe("stop holder", OUTAGE, true),
    safe("stop waiter", OUTAGE, true),
    safe("stop holder past ttl", OUTAGE, true),
    safe("stop waiter and delay grants", OUTAGE, true),
    safe("kill holder", &[], false),
    safe("kill waiter", &[], false),
    safe("kill releasing", &[], false),
    safe("delay", OUTAGE, true),
    safe("delay and kill holder", OUTAGE, true),
    safe("drop", OUTAGE, true),
    safe("black hole", OUTAGE, true),
    safe("truncate", OUTAGE, true),
    safe("half-close", OUTAGE, true),
    safe("lose reply to acquire", UNAVAILABLE, false),
    safe("lose reply to renew", UNAVAILABLE, false),
    safe("lose reply to release", UNAVAILABLE, false),
    safe("lose reply to downgrade", UNAVAILABLE, false),
    safe("lose reply to acquire several", UNAVAILABLE, false),
    safe("stop server", OUTAGE, true),
    safe("restart server with aof", OUTAGE, true),
    safe("script flush", &[], false),
    safe("client kill normal", UNAVAILABLE, false),
    safe("client kill pubsub", &[], false),
    safe("client pause", OUTAGE, true),
    safe("maxmemory", OUTAGE, true),
    safe("busy script", OUTAGE, true),
    safe("acl revoked", REFUSAL, true),
    safe("descriptors exhausted", OUTAGE, true),
    // Nodes and sentinels are asked by threads, without which a locker that is opened then finds no server.
    safe("threads exhausted", &["engine", "unavailable"], false),
    safe("kill passing", &[], false),
    safe("close", &[], false),
    safe("break", &[], false),
    safe("stop holder and break", OUTAGE, true),
    safe("stop program", &[], true),
    safe("kill program", &[], false),
    safe("kill watchdog", &[], false),
    safe("cut program off", &[], true),
    moving("slots moved", Moves::Slots),
    moving("fail over", Moves::Masters),
    moving("master killed", Moves::Masters),
    moving("master stopped past failover", Moves::Masters),
    moving("master cut off", Moves::Masters),
    moving(BY_ITSELF, Moves::Masters),
    safe("disk full", DISK, false),
    safe("open files exhausted", DISK, false),
    safe(KEPT_BY_CHILD, UNAVAILABLE, false),
    safe("leader killed", OUTAGE, true),
    safe("leader stopped past election", OUTAGE, true),
    safe("leader cut off", OUTAGE, true),
    safe("follower cut off", OUTAGE, true),
    safe("minority down", OUTAGE, true),
    safe("majority down", OUTAGE, true),
    safe("all restarted", OUTAGE, true),
    safe("compaction", &[], false),
    safe(ELECTION, OUTAGE, true),
    harmful("restart server without aof", true),
    harmful("flushall", true),
    harmful("delete lock", false),
    harmful("lease ended", false),
    harmful("evict", true),
    harmful("fail over to a stale replica", true),
    harmful("delete counter", true),
    harmful("server clock forward", false),
    harmful("server clock back", false),
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

    /// Whether it is of members that elect a leader.
    pub fn is_of_members(&self) -> bool {
        OF_MEMBERS.contains(&self.name)
    }

    /// Whether it is of processes whose locks live in a directory, and of no others.
    pub fn is_of_files(&self) -> bool {
        OF_FILES.contains(&self.name)
    }

    /// Whether somebody breaks a lock, whose name its event has.
    pub fn breaks(&self) -> bool {
        self.name.ends_with("break")
    }

    /// Whether it is one of the program `crosslock`, or of its watchdog.
    pub fn hits_program(&self) -> bool {
        self.name.contains(" program") || self.name.ends_with(" watchdog")
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
