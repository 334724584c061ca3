//! One world from its seed to its end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crosslock_world::{
    Chances, Cut, Machine, Process, Settings, add_machine, add_process, await_message, contents,
    cut, is_alive, messages, record, run, set_message_fault, time, true_now, violation,
};
use fastrand::Rng;

use crate::messages::Fault;
use crate::places::Site;
use crate::plan::{Plan, Step, Topology, Trouble};
use crate::{judge, scenes, trouble, work};

/// What came of a world.
pub struct Outcome {
    pub lines: Vec<String>,
    pub violations: Vec<String>,
    pub digest: u64,
    pub decisions: u64,
    pub acquisitions: usize,
    pub troubles: usize,
    pub simulated: Duration,
    pub messages: u64,
}

/// A scene in the place of what a seed makes, and what happens to one of its messages.
#[derive(Clone, Debug)]
pub struct Scene {
    pub name: String,
    pub fault: Option<(u64, Fault)>,
}

/// A process of the plan, which is started again when it was killed.
pub struct Part {
    pub machine: Machine,
    pub process: Process,
    pub starts: usize,
}

/// What each process has done, however often it was started.
#[derive(Clone, Copy, Default)]
struct Work {
    rounds: usize,
    is_done: bool,
}

static WORK: Mutex<Vec<Work>> = Mutex::new(Vec::new());

fn with_work<T>(at: usize, change: impl FnOnce(&mut Work) -> T) -> T {
    let mut work = WORK.lock().unwrap_or_else(PoisonError::into_inner);
    if work.len() <= at {
        work.resize(at + 1, Work::default());
    }
    change(&mut work[at])
}

/// Whether a thread of the process goes on.
pub fn takes_round(plan: &Plan, at: usize) -> bool {
    with_work(at, |work| {
        work.rounds += 1;
        work.rounds <= plan.rounds * plan.threads
    })
}

/// A process has done all of its work.
pub fn done(at: usize) {
    with_work(at, |work| work.is_done = true);
}

pub fn is_done(plan: &Plan) -> bool {
    (0..plan.processes).all(|at| with_work(at, |work| work.is_done))
}

pub fn simulate(plan: &Plan, scene: Option<&Scene>) -> Outcome {
    /// What is left undone by then never ends.
    const MOST: Duration = Duration::from_secs(30 * 3600);
    judge::begin(plan);
    let settings = Settings {
        seed: plan.seed,
        chances: Chances {
            preempted: plan.preempted,
            stalled: plan.stalled,
            longest_stall: Duration::from_millis(if plan.busy.is_some() { 1 } else { 200 }),
            woken_early: plan.preempted / 10.0,
        },
        most: MOST,
        // Several times what any world has taken.
        most_decisions: (plan.rounds as u64 * 40_000).max(4_000_000),
    };
    let (mut simulated, mut sent) = (Duration::ZERO, 0);
    let end = run(settings, || {
        match scene {
            Some(scene) => scenes::play(plan, &Site::open(plan), &scene.name, scene.fault),
            None => live(plan),
        }
        (simulated, sent) = (true_now(), messages());
    });
    Outcome {
        lines: end.lines,
        violations: end.violations,
        digest: end.digest,
        decisions: end.decisions,
        acquisitions: judge::ACQUISITIONS.load(Ordering::Relaxed),
        troubles: judge::TROUBLES.load(Ordering::Relaxed),
        simulated,
        messages: sent,
    }
}

/// Behind as many all is well, so that each world comes to an end.
const MOST_TROUBLES: u32 = 100;

fn live(plan: &Plan) {
    let mut random = Rng::with_seed(plan.seed ^ 0x0077_6f72_6c64);
    let plan = Arc::new(plan.clone());
    let site = Arc::new(Site::open(&plan));
    let machines: Vec<Machine> = (0..plan.processes.min(3))
        .map(|at| add_machine(&format!("machine-{at}"), random.i64(-2_000..=2_000)))
        .collect();
    if plan.has(Trouble::SilentHost) {
        let place = site.hosts[random.usize(..site.hosts.len())];
        let [to_host, to_client] = [true; 2];
        let cut_off = |machine: &Machine| cut(*machine, place, Cut { to_host, to_client });
        machines.iter().for_each(cut_off);
    }
    let mut parts: Vec<Part> = (0..plan.processes)
        .map(|at| start(&plan, &site, machines[at % machines.len()], at, 0))
        .collect();
    let mut troubles = 0;
    while !is_done(&plan) {
        time::sleep(plan.calm.mul_f64(random.f64() * 2.0));
        if !plan.troubles.is_empty() && !is_done(&plan) && troubles < MOST_TROUBLES {
            troubles += 1;
            if random.bool() {
                // While something is on its way.
                await_message(messages() + random.u64(1..20), plan.calm);
            }
            trouble::make(&plan, &site, &mut parts, &mut random);
        }
        restart(&plan, &site, &mut parts);
    }
    set_message_fault(None);
    let left = Duration::from_secs(30).max(plan.ttl * 3);
    time::sleep(left);
    judge_remains(&plan, &site);
    work::judge_remaining(&plan, &site);
}

fn start(plan: &Arc<Plan>, site: &Arc<Site>, machine: Machine, at: usize, starts: usize) -> Part {
    let (plan, site) = (plan.clone(), site.clone());
    let name = format!("process-{at}.{starts}");
    let process = add_process(machine, &name, move || {
        work::process(&plan, &site, at, starts)
    });
    Part {
        machine,
        process,
        starts,
    }
}

/// Starts again what was killed.
fn restart(plan: &Arc<Plan>, site: &Arc<Site>, parts: &mut [Part]) {
    for (at, part) in parts.iter_mut().enumerate() {
        if !is_alive(part.process) {
            *part = start(plan, site, part.machine, at, part.starts + 1);
        }
    }
}

/// Nothing stays behind: each key of a lock has a ttl.
fn judge_remains(plan: &Plan, site: &Site) {
    let Some(place) = site.hosts.first() else {
        return;
    };
    for line in contents(place.service) {
        record(&format!("left: {line}"));
        judge::remains::left(&line);
        if line.starts_with("put out") && !plan.does(Step::Break) {
            violation(line.clone());
        }
        let is_value =
            line.contains(":value") || line.contains("/value") || line.contains("tasks-");
        let is_redis = matches!(
            plan.topology,
            Topology::Redis | Topology::Sentinel | Topology::Cluster | Topology::Quorum
        );
        if is_redis && line.contains("no ttl") && !is_value {
            violation(format!("this stays behind: {line}"));
        }
    }
}
