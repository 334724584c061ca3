//! The command line: one world in this process, or many, each in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::plan::{Plan, Topology};
use crate::world::{Outcome, simulate};

pub const USAGE: &str = "\
usage: simulate SEED [--engine NAME]      one world, with its history
       simulate --seeds N [--from SEED]   many worlds, on all processors
       simulate --seconds S               as many as can be done in that time
       simulate --twice N                 each of N worlds twice: is it the same?

engines: memory redis sentinel cluster etcd zookeeper";

#[derive(Clone, Debug, Default)]
pub struct Options {
    seed: Option<u64>,
    engines: Vec<Topology>,
    seeds: Option<u64>,
    seconds: Option<u64>,
    from: u64,
    is_twice: bool,
    /// A child of a run of many: it prints a line.
    is_child: bool,
    rounds: Option<usize>,
}

impl Options {
    pub fn of(arguments: &[String]) -> Result<Self, String> {
        let mut options = Options::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--engine" => {
                    let name = value()?;
                    let engine = Topology::of(name).ok_or_else(|| format!("no engine {name}"))?;
                    options.engines.push(engine);
                }
                "--seeds" => options.seeds = Some(number(value()?)?),
                "--seconds" => options.seconds = Some(number(value()?)?),
                "--from" => options.from = number(value()?)?,
                "--rounds" => options.rounds = usize::try_from(number(value()?)?).ok(),
                "--twice" => {
                    options.seeds = Some(number(value()?)?);
                    options.is_twice = true;
                }
                "--child" => options.is_child = true,
                seed => options.seed = Some(number(seed)?),
            }
        }
        if options.engines.is_empty() {
            options.engines = Topology::ALL.iter().map(|(_, it)| *it).collect();
        }
        let has_work = options.seed.or(options.seeds).or(options.seconds).is_some();
        has_work
            .then_some(options)
            .ok_or_else(|| "which seed?".to_owned())
    }

    fn engine_of(&self, seed: u64) -> Topology {
        let at = seed % self.engines.len() as u64;
        self.engines[usize::try_from(at).unwrap_or(0)]
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

pub fn run(options: &Options) -> ExitCode {
    match options.seed {
        Some(seed) => one(seed, options),
        None => many(options),
    }
}

fn one(seed: u64, options: &Options) -> ExitCode {
    let mut plan = Plan::of(seed, options.engine_of(seed));
    plan.rounds = options.rounds.unwrap_or(plan.rounds);
    pin(seed);
    // In all worlds, since the library asks for more where it is to log more.
    let _ = log::set_logger(&Logger);
    log::set_max_level(log::LevelFilter::Debug);
    let outcome = simulate(&plan);
    let failed = !outcome.violations.is_empty();
    if !options.is_child || failed {
        outcome.lines.iter().for_each(|line| println!("{line}"));
        println!("{plan:?}");
    }
    outcome
        .violations
        .iter()
        .for_each(|text| println!("violation: {text}"));
    println!("{}", line_of(&plan, &outcome));
    // Threads that were killed in the world never end.
    std::process::exit(i32::from(failed))
}

fn line_of(plan: &Plan, outcome: &Outcome) -> String {
    format!(
        "seed {} engine {} acquisitions {} troubles {} simulated {:.3} decisions {} digest {:016x}",
        plan.seed,
        plan.topology.name(),
        outcome.acquisitions,
        outcome.troubles,
        outcome.simulated.as_secs_f64(),
        outcome.decisions,
        outcome.digest
    )
}

/// A world whose threads all run on one processor takes half the time.
fn pin(seed: u64) {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = rustix::thread::CpuSet::new();
    set.set(usize::try_from(seed % all as u64).unwrap_or(0));
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Has what the library logs stand in the history.
struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, line: &log::Record<'_>) {
        crosslock_world::record(&format!("{} {}", line.level(), line.args()));
    }

    fn flush(&self) {}
}

#[derive(Default)]
struct Sum {
    worlds: u64,
    acquisitions: u64,
    troubles: u64,
    simulated: f64,
    failed: Vec<(u64, Topology)>,
}

fn many(options: &Options) -> ExitCode {
    let began = Instant::now();
    let next = AtomicU64::new(options.from);
    let last = options.seeds.map_or(u64::MAX, |seeds| options.from + seeds);
    let sum = Arc::new(Mutex::new(Sum::default()));
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let limit = options.seconds.map(Duration::from_secs);
    std::thread::scope(|scope| {
        for _ in 0..all {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = limit.is_some_and(|limit| began.elapsed() >= limit);
                    if seed >= last || is_over {
                        return;
                    }
                    run_child(seed, options, &sum);
                }
            });
        }
    });
    let sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    let took = began.elapsed().as_secs_f64();
    println!(
        "{} worlds: {} acquisitions, {} troubles, {:.0} s simulated in {took:.1} s ({:.0} x)",
        sum.worlds,
        sum.acquisitions,
        sum.troubles,
        sum.simulated,
        sum.simulated / took
    );
    for (seed, engine) in &sum.failed {
        println!("failed: simulate {seed} --engine {}", engine.name());
    }
    ExitCode::from(u8::from(!sum.failed.is_empty()))
}

fn run_child(seed: u64, options: &Options, sum: &Mutex<Sum>) {
    let engine = options.engine_of(seed);
    let first = child(seed, engine, options);
    let mut failed = first.is_none();
    if options.is_twice && first.is_some() {
        let again = child(seed, engine, options);
        failed = again != first;
        if failed {
            println!("two runs differ:\n{first:?}\n{again:?}");
        }
    }
    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    sum.worlds += 1;
    if failed {
        println!("failed: simulate {seed} --engine {}", engine.name());
        sum.failed.push((seed, engine));
    }
    if let Some(line) = first {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| {
            words
                .get(at)
                .and_then(|word| word.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        sum.acquisitions += u64::try_from(number(5) as i64).unwrap_or(0);
        sum.troubles += u64::try_from(number(7) as i64).unwrap_or(0);
        sum.simulated += number(9);
    }
}

/// Its last line; `None`: it failed.
fn child(seed: u64, engine: Topology, options: &Options) -> Option<String> {
    let own = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(own);
    command.args([&seed.to_string(), "--child", "--engine", engine.name()]);
    if let Some(rounds) = options.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be run again");
    let output = child.stdout.take().expect("it has an output");
    let mut last = None;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if line.starts_with("violation") {
            println!("seed {seed} {}: {line}", engine.name());
        }
        last = Some(line);
    }
    let status = child.wait().expect("it ends");
    last.filter(|_| status.success())
}
