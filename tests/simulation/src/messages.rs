//! The loop over messages: each scene on each engine is played once for each of its messages, and each thing that can
//! happen to it, until there are no more messages.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crosslock_world::Message;
use fastrand::Rng;

use crate::children::{Sum, child, is_over, on_all};
use crate::events::Event;
use crate::plan::{Topology, all_replicas};
use crate::runner::Options;
use crate::scenes::SCENES;

/// What happens to a message, or when it is sent.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Message(Message),
    /// And whether all replicas must confirm leases.
    Event(Event, bool),
}

pub const FAULTS: [(&str, Fault); 16] = [
    ("drop", Fault::Message(Message::Drop)),
    ("close", Fault::Message(Message::Close)),
    ("behind", Fault::Message(Message::CloseBehind)),
    (
        "duplicate",
        Fault::Message(Message::Duplicate(Duration::from_millis(20))),
    ),
    // Longer than a call waits for its answer.
    (
        "delay",
        Fault::Message(Message::Delay(Duration::from_millis(600))),
    ),
    ("garble", Fault::Message(Message::Garble)),
    ("stop", Fault::Event(Event::Stop, false)),
    ("pause", Fault::Event(Event::Pause, false)),
    ("hang", Fault::Event(Event::Hang, false)),
    ("freeze", Fault::Event(Event::Freeze, false)),
    ("die", Fault::Event(Event::Die, false)),
    ("cut", Fault::Event(Event::Cut, false)),
    ("failover", Fault::Event(Event::FailOver, false)),
    ("move", Fault::Event(Event::Move, false)),
    ("odds", Fault::Event(Event::Odds, false)),
    ("die-confirmed", Fault::Event(Event::Die, true)),
];

impl Fault {
    fn happens_on(self, topology: Topology) -> bool {
        match self {
            Fault::Message(_) => true,
            Fault::Event(event, is_confirmed) => {
                event.happens_on(topology) && (!is_confirmed || all_replicas(topology) > 0)
            }
        }
    }
}

/// What a quorum doesn't have; what is for one server, for those that are replaced, for a cluster, and for a quorum.
const NOT_OF_QUORUM: [&str; 3] = ["shared", "permits", "value"];
const OF_ONE_SERVER: [&str; 8] = [
    "flushed",
    "flushed-all",
    "flushed-reader",
    "flushed-value",
    "flushed-panic",
    "kept-twice",
    "queue-lost",
    "line",
];
const OF_REPLICAS: [&str; 2] = ["kept", "half"];
const OF_CLUSTER: [&str; 2] = ["front", "shards"];
const OF_QUORUM: [&str; 4] = ["by-one", "heard-late", "late-release", "cut-off"];

fn is_played(scene: &str, engine: Topology) -> bool {
    match engine {
        Topology::Memory => false,
        Topology::Quorum if NOT_OF_QUORUM.contains(&scene) => false,
        _ if OF_ONE_SERVER.contains(&scene) => engine == Topology::Redis,
        Topology::Quorum | Topology::Etcd | Topology::ZooKeeper if scene == "tasks" => false,
        _ if OF_QUORUM.contains(&scene) => engine == Topology::Quorum,
        _ if OF_REPLICAS.contains(&scene) => all_replicas(engine) > 0,
        _ => !OF_CLUSTER.contains(&scene) || engine == Topology::Cluster,
    }
}

/// Each scene, once for each message and fault; or each of so many. Where the time is limited, they come in any order,
/// which is the same each time.
pub fn run(options: &Options) -> ExitCode {
    let (began, sum) = (Instant::now(), Mutex::default());
    let mut all = Vec::new();
    for engine in &options.engines {
        let scenes = SCENES.iter().filter(|(scene, _)| is_played(scene, *engine));
        all.extend(scenes.flat_map(|(scene, _)| faults_of(*engine, scene, options, &sum)));
    }
    let limit = options.seconds.map(Duration::from_secs);
    if limit.is_some() {
        Rng::with_seed(1).shuffle(&mut all);
        spread(&mut all);
    }
    let left = Mutex::new(all.into_iter().step_by(options.every.unwrap_or(1).max(1)));
    on_all(|| {
        let has_time = limit.is_none_or(|limit| began.elapsed() < limit);
        let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(arguments) = next.filter(|_| has_time && !is_over()) else {
            return false;
        };
        Sum::add(&sum, child(&arguments).as_ref(), &arguments, options);
        true
    });
    Sum::print(&sum, began.elapsed())
}

/// Puts one of each scene and fault in front, then a second one of each, and so on; of what happens to a message alone,
/// which worlds meet often, a third as many.
fn spread(all: &mut [Vec<String>]) {
    let mut seen = BTreeMap::new();
    all.sort_by_cached_key(|arguments| {
        let fault = arguments
            .last()
            .and_then(|last| last.split(':').next_back());
        let found = FAULTS.iter().find(|(name, _)| Some(*name) == fault);
        let (name, fault) = found.expect("a fault of that name");
        let seen = seen.entry((arguments[1].clone(), name)).or_insert(0);
        *seen += if matches!(fault, Fault::Message(_)) {
            3
        } else {
            1
        };
        *seen
    });
}

/// Plays it as it is, and says how to play it with each fault of each of its messages.
fn faults_of(
    engine: Topology,
    scene: &str,
    options: &Options,
    sum: &Mutex<Sum>,
) -> Vec<Vec<String>> {
    let arguments = ["--scene", scene, "--engine", engine.name()].map(str::to_owned);
    let whole = child(&arguments);
    Sum::add(sum, whole.as_ref(), &arguments, options);
    let messages = whole.map_or(0, |whole| whole.count("messages"));
    let faults = || FAULTS.iter().filter(|(_, fault)| fault.happens_on(engine));
    let all = (1..=messages)
        .flat_map(|message| faults().map(move |(name, _)| format!("{message}:{name}")));
    let with = |fault| [&arguments[..], &["--message".to_owned(), fault]].concat();
    all.map(with).collect()
}
