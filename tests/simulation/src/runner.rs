//! The command line, and one world in this process.

use std::process::ExitCode;
use std::time::Duration;

use crosslock_world::{record, violation};

use crate::events::Event;
use crate::messages::Fault;
use crate::plan::{Plan, Step, Topology, Trouble, all_replicas};
use crate::world::{Outcome, Scene, simulate};
use crate::{children, judge, messages, shrink};

pub const USAGE: &str = "\
usage: simulate SEED [--engine NAME]       one world, with its history
       simulate --seeds N [--from SEED]    many worlds, on all processors
       simulate --seconds S                as many as there is time for
       simulate --seconds S --first        the same, up to the first that fails
       simulate --twice N                  each of N worlds twice: is it the same?
       simulate SEED --shrink              the shortest history of it that fails
       simulate --messages [--every N]     each scene, once for each message and fault
       simulate --messages --seconds S     as many of those as there is time for
       simulate --scene NAME --message N:FAULT

a smaller world: --rounds N --processes N --threads N --without TROUBLE
engines: memory redis sentinel cluster quorum etcd zookeeper
faults:  drop close behind duplicate delay garble
         or what happens when it is sent: stop pause hang freeze die cut failover move odds;
         die-confirmed where replicas confirm leases";

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub seed: Option<u64>,
    pub engines: Vec<Topology>,
    pub seeds: Option<u64>,
    pub seconds: Option<u64>,
    pub from: u64,
    pub is_twice: bool,
    pub messages: bool,
    /// A child of a run of many: it prints a line.
    is_child: bool,
    /// Only each of so many messages has something happen to it.
    pub every: Option<usize>,
    pub stops_at_first: bool,
    pub is_shrunk: bool,
    pub smaller: Smaller,
    scene: Option<String>,
    message: Option<(u64, Fault)>,
}

impl Options {
    pub fn of(arguments: &[String]) -> Result<Self, String> {
        let mut options = Options::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            options.take(word, || {
                words.next().ok_or_else(|| format!("{word} needs a value"))
            })?;
        }
        if options.engines.is_empty() {
            options.engines = Topology::ALL.iter().map(|(_, it)| *it).collect();
        }
        let has_work = options.seed.or(options.seeds).or(options.seconds).is_some();
        let has_work = has_work || options.messages || options.scene.is_some();
        has_work
            .then_some(options)
            .ok_or_else(|| "which seed?".to_owned())
    }

    fn take<'a>(
        &mut self,
        word: &str,
        value: impl FnOnce() -> Result<&'a String, String>,
    ) -> Result<(), String> {
        match word {
            "--engine" => {
                let name = value()?;
                let engine = Topology::of(name).ok_or_else(|| format!("no engine {name}"))?;
                self.engines.push(engine);
            }
            "--seeds" => self.seeds = Some(number(value()?)?),
            "--seconds" => self.seconds = Some(number(value()?)?),
            "--from" => self.from = number(value()?)?,
            "--rounds" | "--processes" | "--threads" => {
                let value = usize::try_from(number(value()?)?).ok();
                match word {
                    "--rounds" => self.smaller.rounds = value,
                    "--processes" => self.smaller.processes = value,
                    _ => self.smaller.threads = value,
                }
            }
            "--without" => self.smaller.without.push(value()?.clone()),
            "--every" => self.every = usize::try_from(number(value()?)?).ok(),
            "--first" => self.stops_at_first = true,
            "--shrink" => self.is_shrunk = true,
            "--scene" => self.scene = Some(value()?.clone()),
            "--message" => self.message = Some(message(value()?)?),
            "--messages" => self.messages = true,
            "--twice" => {
                self.seeds = Some(number(value()?)?);
                self.is_twice = true;
            }
            "--child" => self.is_child = true,
            seed => self.seed = Some(number(seed)?),
        }
        Ok(())
    }

    pub fn engine_of(&self, seed: u64) -> Topology {
        let at = seed % self.engines.len() as u64;
        self.engines[usize::try_from(at).unwrap_or(0)]
    }
}

/// What a plan is made smaller by.
#[derive(Clone, Debug, Default)]
pub struct Smaller {
    pub rounds: Option<usize>,
    pub processes: Option<usize>,
    pub threads: Option<usize>,
    /// Troubles, as `Debug` shows them.
    pub without: Vec<String>,
}

impl Smaller {
    pub fn of(&self, mut plan: Plan) -> Plan {
        plan.rounds = self.rounds.unwrap_or(plan.rounds);
        plan.processes = self.processes.unwrap_or(plan.processes);
        plan.threads = self.threads.unwrap_or(plan.threads);
        let is_left = |trouble: &Trouble| !self.without.contains(&format!("{trouble:?}"));
        plan.troubles.retain(is_left);
        plan
    }

    pub fn arguments(&self) -> Vec<String> {
        let counts = [
            ("--rounds", self.rounds),
            ("--processes", self.processes),
            ("--threads", self.threads),
        ];
        let counts = counts
            .into_iter()
            .filter_map(|(name, count)| Some((name, count?.to_string())));
        let without = self
            .without
            .iter()
            .map(|trouble| ("--without", trouble.clone()));
        counts
            .chain(without)
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

fn message(text: &str) -> Result<(u64, Fault), String> {
    let (at, name) = text.split_once(':').ok_or("a message is N:FAULT")?;
    let fault = messages::FAULTS.iter().find(|(own, _)| *own == name);
    let (_, fault) = fault.ok_or_else(|| format!("no fault {name}"))?;
    Ok((number(at)?, *fault))
}

pub fn run(options: &Options) -> ExitCode {
    match (options.seed, &options.scene) {
        (Some(seed), _) if options.is_shrunk => shrink::run(seed, options),
        (Some(seed), _) => {
            let plan = Plan::of(seed, options.engine_of(seed));
            one(&options.smaller.of(plan), None, options)
        }
        (None, Some(name)) => {
            let scene = Scene {
                name: name.clone(),
                fault: options.message,
            };
            let fault = options.message.map(|(_, fault)| fault);
            one(
                &plan_of_scenes(name, options.engine_of(0), fault),
                Some(&scene),
                options,
            )
        }
        _ if options.messages => messages::run(options),
        _ => children::many(options),
    }
}

/// In scenes nothing goes wrong but that, and what they are about. A host that hangs is replaced before a call to it
/// ends.
fn plan_of_scenes(scene: &str, topology: Topology, fault: Option<Fault>) -> Plan {
    let short = Duration::from_millis(400);
    let (mut troubles, io_timeout, is_confirmed) = match fault {
        Some(Fault::Event(event, is_confirmed)) => {
            (event.troubles(), Duration::from_secs(60), is_confirmed)
        }
        Some(Fault::Message(_)) => (vec![Trouble::Message], short, false),
        None => (Vec::new(), short, false),
    };
    if scene.starts_with("flushed") {
        troubles.push(Trouble::LoseData);
    }
    if matches!(scene, "by-one" | "heard-late") {
        troubles.push(Trouble::PauseHost);
    }
    if scene == "cut-off" {
        troubles.push(Trouble::CutNetwork);
    }
    let (replicas, is_event) = (all_replicas(topology), io_timeout > short);
    let is_frozen = matches!(fault, Some(Fault::Event(Event::Freeze, _)));
    // Sessions of ZooKeeper are no longer than the one.
    let ttl = match topology {
        Topology::Etcd if is_frozen => 9,
        Topology::ZooKeeper => 2,
        _ if is_frozen || is_event && replicas > 0 => 4,
        _ => 2,
    };
    Plan {
        steps: vec![Step::Lock],
        ttl: Duration::from_secs(ttl),
        renews: true,
        max_hold: None,
        io_timeout,
        min_replicas: if is_confirmed { replicas } else { 0 },
        troubles,
        preempted: 0.0,
        stalled: 0.0,
        ..Plan::of(0, topology)
    }
}

fn one(plan: &Plan, scene: Option<&Scene>, options: &Options) -> ExitCode {
    if !options.is_child {
        children::stay_on_processor(0);
    }
    // In all worlds, since the library asks for more where it is to log more.
    let _ = log::set_logger(&Logger);
    log::set_max_level(log::LevelFilter::Debug);
    let outcome = simulate(plan, scene);
    let failed = !outcome.violations.is_empty();
    if !options.is_child || failed {
        outcome.lines.iter().for_each(|line| println!("{line}"));
        println!("{plan:?}");
    }
    outcome
        .violations
        .iter()
        .for_each(|text| println!("violation: {text}"));
    println!("{}", line_of(plan, &outcome));
    // Threads that were killed in the world never end.
    std::process::exit(i32::from(failed))
}

fn line_of(plan: &Plan, outcome: &Outcome) -> String {
    format!(
        "seed {} engine {} acquisitions {} troubles {} simulated {:.3} messages {} decisions {} digest {:016x}",
        plan.seed,
        plan.topology.name(),
        outcome.acquisitions,
        outcome.troubles,
        outcome.simulated.as_secs_f64(),
        outcome.messages,
        outcome.decisions,
        outcome.digest
    )
}

/// Has what the library logs stand in the history.
struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, line: &log::Record<'_>) {
        let text = line.args().to_string();
        record(&format!("{} {text}", line.level()));
        let blames = ["connection", "doesn't answer"];
        let blames = blames.iter().any(|it| text.contains(it));
        // Some replicas confirm late, as in a network where all is well.
        let warns = line.level() <= log::Level::Warn && blames && !text.contains("replicas");
        if warns && judge::plan().is_calm() {
            violation(format!("nothing is wrong, and it says: {text}"));
        }
    }

    fn flush(&self) {}
}
