//! What a seed makes of a world: its servers, its processes, what they do, and what goes wrong.

use std::time::Duration;

use fastrand::Rng;

pub use crate::steps::Step;

/// Where the locks of a world live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    Memory,
    Redis,
    Sentinel,
    Cluster,
    Quorum,
    Etcd,
    ZooKeeper,
}

impl Topology {
    pub const ALL: [(&str, Topology); 7] = [
        ("memory", Topology::Memory),
        ("redis", Topology::Redis),
        ("sentinel", Topology::Sentinel),
        ("cluster", Topology::Cluster),
        ("quorum", Topology::Quorum),
        ("etcd", Topology::Etcd),
        ("zookeeper", Topology::ZooKeeper),
    ];

    pub fn of(name: &str) -> Option<Self> {
        Topology::ALL
            .iter()
            .find(|(own, _)| *own == name)
            .map(|(_, it)| *it)
    }

    pub fn name(self) -> &'static str {
        let own = Topology::ALL.iter().find(|(_, it)| *it == self);
        own.map_or("", |(name, _)| name)
    }
}

/// What can go wrong in a world. Each seed has some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    KillProcess,
    /// Nobody is told that its connections are gone.
    LosePower,
    /// It can't start threads.
    NoThreads,
    PauseProcess,
    SuspendMachine,
    StepClientClock,
    CutNetwork,
    SlowNetwork,
    Message,
    KillHost,
    PauseHost,
    CutHost,
    Own,
    /// Few bytes go at once, as where a reader is slow.
    SlowHost,
    /// The name of a server can't be looked up, or leads to where nobody is.
    Names,
    /// A server evicts keys that have a ttl, of which each lock is one. Values have none.
    Evict,
    /// A server loses what it had: what leases rely on is broken, and only tokens are judged.
    LoseData,
    /// The clock of a server of a quorum is set, by which leases end: as above.
    StepHostClock,
    /// Programs that aren't crosslock stand in line.
    Strangers,
    /// A host swallows what it is sent, from the beginning.
    SilentHost,
}

impl Trouble {
    /// Those of which worlds on any engine have some.
    pub const ALL: [Trouble; 17] = [
        Trouble::KillProcess,
        Trouble::LosePower,
        Trouble::NoThreads,
        Trouble::PauseProcess,
        Trouble::SuspendMachine,
        Trouble::StepClientClock,
        Trouble::CutNetwork,
        Trouble::SlowNetwork,
        Trouble::Message,
        Trouble::KillHost,
        Trouble::PauseHost,
        Trouble::CutHost,
        Trouble::Own,
        Trouble::SlowHost,
        Trouble::Names,
        Trouble::Evict,
        Trouble::LoseData,
    ];
}

impl Trouble {
    /// What has another server take the place of one.
    const OF_HOSTS: [Trouble; 4] = [
        Trouble::KillHost,
        Trouble::PauseHost,
        Trouble::CutHost,
        Trouble::Own,
    ];

    fn kills(self) -> bool {
        matches!(self, Trouble::KillProcess | Trouble::LosePower)
    }
}

/// What most threads of a busy process do when somebody else has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    Stays,
    GivesUp,
}

impl Busy {
    /// About so many rounds after each other a thread asks for it, until it pauses.
    pub fn rounds(self) -> u32 {
        match self {
            Busy::Stays => 30,
            Busy::GivesUp => 15,
        }
    }
}

/// A world, as its seed has it. What is smaller than that was made so, to find the shortest history that fails.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub topology: Topology,
    pub processes: usize,
    pub threads: usize,
    pub names: usize,
    /// How much each thread does.
    pub rounds: usize,
    pub steps: Vec<Step>,
    pub ttl: Duration,
    /// Whether leases are renewed, and for how long.
    pub renews: bool,
    pub max_hold: Option<Duration>,
    pub io_timeout: Duration,
    /// How many replicas must confirm a lease.
    pub min_replicas: u32,
    pub troubles: Vec<Trouble>,
    /// How much time is between two troubles, about.
    pub calm: Duration,
    pub preempted: f64,
    pub stalled: f64,
    /// Whether servers let only those in that log in.
    pub logs_in: bool,
    /// Whether locks are held for a moment, and asked for again at once.
    pub busy: Option<Busy>,
}

impl Plan {
    pub fn of(seed: u64, topology: Topology) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x0070_6c61_6e00);
        let mut troubles = some_troubles(topology, &mut random);
        if topology == Topology::Quorum && seed % 8 == 5 {
            troubles.push(Trouble::StepHostClock);
        }
        let is_memory = topology == Topology::Memory;
        let plan = Plan {
            seed,
            topology,
            processes: if is_memory { 1 } else { random.usize(1..=6) },
            // Of processes with one thread each the order is known best.
            threads: [1, 1, 2, 3, 4][random.usize(..5)],
            names: random.usize(1..=4),
            rounds: random.usize(10..=most_rounds(topology)),
            steps: Step::some(topology, &mut random),
            ttl: ttl(topology, &mut random),
            renews: random.u32(..6) > 0,
            max_hold: (random.u32(..10) == 0).then(|| Duration::from_millis(random.u64(1..2_000))),
            io_timeout: Duration::from_millis(random.u64(200..2_000)),
            min_replicas: if random.bool() || troubles == Trouble::OF_HOSTS {
                all_replicas(topology)
            } else {
                0
            },
            troubles,
            calm: Duration::from_millis(random.u64(50..3_000)),
            preempted: [0.0, 0.01, 0.1][random.usize(..3)],
            stalled: [0.0, 0.0, 0.0001][random.usize(..3)],
            logs_in: topology == Topology::Etcd && seed.is_multiple_of(4),
            busy: None,
        };
        match random.u32(..12) {
            _ if plan.is_about_one() => plan.about_one(&mut random),
            0 if can_be_crowded(topology) => plan.crowded(&mut random),
            0..3 if is_memory => plan.busy(&mut random),
            _ => plan,
        }
    }

    /// So many wait for one name that an engine treats those far behind in another way.
    fn crowded(mut self, random: &mut Rng) -> Self {
        self.processes = random.usize(18..=24);
        (self.threads, self.names) = (1, 1);
        self.rounds = self.rounds.min(12);
        let other = [Step::Break, self.steps[0]][random.usize(..2)];
        self.steps = vec![Step::Lock, Step::Lock, other];
        self
    }

    /// So many threads of a process want one name, each for a moment, that they hand it over in all ways. They stand
    /// still often, and never for long.
    fn busy(mut self, random: &mut Rng) -> Self {
        (self.threads, self.names, self.rounds) = (random.usize(3..=6), 1, 120);
        let (busy, stalled) = [(Busy::Stays, 0.1), (Busy::GivesUp, 0.2)][random.usize(..2)];
        (self.busy, self.stalled, self.preempted) = (Some(busy), stalled, 0.1);
        self.troubles = Vec::new();
        self.steps = vec![Step::Lock, Step::Timed, Step::Cancelled];
        self
    }

    /// Whether what goes wrong shows where few wait for one name, which is held for long.
    pub fn is_about_one(&self) -> bool {
        self.has(Trouble::Strangers) || self.has(Trouble::SilentHost)
    }

    fn about_one(mut self, random: &mut Rng) -> Self {
        self.processes = random.usize(3..=5);
        (self.threads, self.names, self.stalled) = (1, 1, 0.0);
        (self.rounds, self.calm) = (self.rounds.min(40), self.calm / 2);
        self.steps = vec![Step::Lock, Step::Lock, self.steps[0]];
        self
    }

    /// Whether a lease may end while all is well.
    pub fn loses(&self) -> bool {
        !self.renews || self.max_hold.is_some() || self.does(Step::Break)
    }

    /// Whether readers and writers can be preferred there.
    pub fn can_prefer(&self) -> bool {
        !matches!(
            self.topology,
            Topology::Quorum | Topology::Etcd | Topology::ZooKeeper
        )
    }

    pub fn does(&self, step: Step) -> bool {
        self.steps.contains(&step)
    }

    pub fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }

    /// Whether exclusion is promised in it: no server forgets what it has said, nor does a replica take its place that
    /// may not have heard of it.
    pub fn is_safe(&self) -> bool {
        let loses = self.replaces_servers() && self.min_replicas < all_replicas(self.topology);
        let breaks = [Trouble::LoseData, Trouble::Evict, Trouble::StepHostClock];
        !loses && !breaks.into_iter().any(|trouble| self.has(trouble))
    }

    /// Whether a replica may take the place of a server, and not have heard of what no replica confirms.
    pub fn replaces_servers(&self) -> bool {
        let mut troubles = Trouble::OF_HOSTS.into_iter();
        all_replicas(self.topology) > 0 && troubles.any(|trouble| self.has(trouble))
    }

    /// Whether nothing goes wrong but that processes die.
    pub fn only_kills(&self) -> bool {
        let only_kills = self.troubles.iter().all(|trouble| trouble.kills());
        only_kills && self.stalled == 0.0
    }

    /// Whether a server learns at once of all that goes wrong, since nothing does but that processes die and their
    /// connections with them.
    pub fn tells_deaths(&self) -> bool {
        let troubles = || self.troubles.iter();
        let is_redis = self.topology == Topology::Redis;
        let only_kills = self.only_kills() && troubles().all(|it| *it == Trouble::KillProcess);
        self.is_calm() || (is_redis && only_kills)
    }

    /// Whether nothing goes wrong that ends the lease of a process which lives.
    pub fn keeps_leases(&self) -> bool {
        let mut troubles = self.troubles.iter();
        let ends_none = |it: &Trouble| it.kills() || *it == Trouble::NoThreads;
        troubles.all(ends_none) && self.stalled == 0.0
    }

    /// Whether what is stored is kept, also by a server that loses locks: who has lost one stores nothing.
    pub fn keeps_values(&self) -> bool {
        self.is_safe() || self.troubles == [Trouble::Evict] && self.stalled == 0.0
    }

    /// Whether processes may stand still, also for longer than a login lasts that isn't used.
    pub fn pauses(&self) -> bool {
        self.has(Trouble::PauseProcess) || self.has(Trouble::SuspendMachine)
    }

    /// Whether threads run when they can: then calls end in time, whatever servers and the network do.
    pub fn has_time(&self) -> bool {
        self.stalled == 0.0 && !self.pauses() && !self.has(Trouble::NoThreads)
    }

    /// Whether a worker that waits gets each task soon.
    pub fn gives_tasks(&self) -> bool {
        self.is_calm() || self.troubles == [Trouble::NoThreads] && self.stalled == 0.0
    }

    /// Whether the shortest ttl is long enough that a lease lasts while all works.
    pub fn is_calm(&self) -> bool {
        self.troubles.is_empty() && self.stalled == 0.0
    }
}

/// How many replicas each master has.
pub fn all_replicas(topology: Topology) -> u32 {
    match topology {
        Topology::Sentinel => 2,
        Topology::Cluster => 1,
        _ => 0,
    }
}

/// A third of all worlds have no trouble: what is promised then is more. So it is where little goes wrong.
fn some_troubles(topology: Topology, random: &mut Rng) -> Vec<Trouble> {
    let all = Trouble::ALL.into_iter();
    let mut troubles: Vec<_> = match random.u32(..10) {
        0..3 => return Vec::new(),
        3 => vec![Trouble::KillProcess],
        4 => vec![Trouble::NoThreads],
        5 if topology == Topology::Redis => return vec![Trouble::Evict],
        5 if all_replicas(topology) > 0 || topology == Topology::Quorum => {
            Trouble::OF_HOSTS.to_vec()
        }
        5 if topology == Topology::Etcd => match random.u32(..3) {
            0 => vec![Trouble::SilentHost],
            _ => vec![Trouble::Strangers, Trouble::PauseProcess],
        },
        6 => vec![Trouble::SlowNetwork, Trouble::CutNetwork],
        _ => all.filter(|_| random.u32(..3) == 0).collect(),
    };
    let keeps_data = matches!(
        topology,
        Topology::Quorum | Topology::Etcd | Topology::ZooKeeper
    );
    if random.u32(..4) > 0 || keeps_data {
        troubles.retain(|trouble| !matches!(trouble, Trouble::Evict | Trouble::LoseData));
    }
    if topology == Topology::Memory {
        // What it has is gone with the process.
        troubles.retain(|trouble| !trouble.kills());
    }
    troubles
}

/// Elsewhere such a world takes a minute.
fn can_be_crowded(topology: Topology) -> bool {
    matches!(
        topology,
        Topology::Redis | Topology::Quorum | Topology::Etcd | Topology::ZooKeeper
    )
}

/// The map of a cluster is large, and asked for often.
fn most_rounds(topology: Topology) -> usize {
    match topology {
        Topology::Cluster => 30,
        _ => 120,
    }
}

fn ttl(topology: Topology, random: &mut Rng) -> Duration {
    Duration::from_millis(match topology {
        Topology::Etcd => random.u64(2..6) * 1_000,
        // Six ticks, as the page on ZooKeeper says, and more.
        Topology::ZooKeeper => random.u64(600..2_000),
        _ => random.u64(600..4_000),
    })
}
