//! Many worlds, each in a process of its own, on all processors.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::runner::Options;

/// What children have done.
#[derive(Default)]
pub struct Sum {
    pub worlds: u64,
    acquisitions: u64,
    troubles: u64,
    simulated: f64,
    /// How to repeat those that failed.
    failed: Vec<String>,
}

/// The last line of a child, as it told it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told(String);

impl Told {
    pub fn number(&self, key: &str) -> f64 {
        let mut words = self.0.split(' ');
        let value = words.find(|word| *word == key).and_then(|_| words.next());
        value.and_then(|value| value.parse().ok()).unwrap_or(0.0)
    }

    pub fn count(&self, key: &str) -> u64 {
        Duration::try_from_secs_f64(self.number(key))
            .unwrap_or_default()
            .as_secs()
    }
}

/// Runs `work` on all processors until it has no more.
pub fn on_all(work: impl Fn() -> bool + Sync) {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let work = &work;
    std::thread::scope(|scope| {
        for number in 0..all {
            scope.spawn(move || {
                stay_on_processor(number);
                while work() {}
            });
        }
    });
}

/// Keeps this thread, and the children that it starts, on one processor: a world whose threads all run on one takes
/// half the time.
pub fn stay_on_processor(number: usize) {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    let mut processors = (0..rustix::thread::CpuSet::MAX_CPU).filter(|at| allowed.is_set(*at));
    let mut one = rustix::thread::CpuSet::new();
    one.set(processors.nth(number).unwrap_or(0));
    let _ = rustix::thread::sched_setaffinity(None, &one);
}

/// A world that takes longer hangs: none takes a tenth of it.
const LONGEST: Duration = Duration::from_secs(200);

/// One world has failed, and no other is to be run.
static IS_OVER: AtomicBool = AtomicBool::new(false);

pub fn is_over() -> bool {
    IS_OVER.load(Ordering::Relaxed)
}

/// Kills a child if it hangs, or if all is over. Returns whether it hung. The child has ended when `ends` is closed.
fn watch(child: &mut Child, ends: &Receiver<()>) -> bool {
    let began = Instant::now();
    while ends.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
        let hangs = began.elapsed() > LONGEST;
        if hangs || is_over() {
            let _ = child.kill();
            return hangs;
        }
    }
    false
}

/// Runs one, and prints its violations. `None`: it failed.
pub fn child(arguments: &[String]) -> Option<Told> {
    let own = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(own);
    command
        .args(arguments)
        .arg("--child")
        // One thread runs at a time. With a heap for each, glibc needs more memory, and time to get it.
        .env("MALLOC_ARENA_MAX", "1")
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("it can be run again");
    let output = child.stdout.take().expect("it has an output");
    let (mut last, mut violations) = (String::new(), Vec::new());
    let hangs = std::thread::scope(|scope| {
        let (over, ends) = channel();
        let child = &mut child;
        let watcher = scope.spawn(move || watch(child, &ends));
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line.starts_with("violation") {
                violations.push(line.clone());
            }
            last = line;
        }
        drop(over);
        watcher.join().unwrap_or(true)
    });
    if hangs {
        violations.push(format!(
            "violation: it hangs, and was killed after {LONGEST:?}"
        ));
    }
    let status = child.wait().expect("it ends");
    // The first says most.
    for violation in violations.iter().take(3) {
        println!("simulate {}: {violation}", arguments.join(" "));
    }
    status.success().then_some(Told(last))
}

impl Sum {
    pub fn add(sum: &Mutex<Sum>, told: Option<&Told>, arguments: &[String], options: &Options) {
        let mut sum = locked(sum);
        let ends_all = told.is_none() && options.stops_at_first;
        if ends_all && IS_OVER.swap(true, Ordering::Relaxed) {
            // This one was killed, since another had failed.
            return;
        }
        sum.worlds += 1;
        match told {
            Some(told) => {
                sum.acquisitions += told.count("acquisitions");
                sum.troubles += told.count("troubles");
                sum.simulated += told.number("simulated");
            }
            None => sum.failed.push(arguments.join(" ")),
        }
    }

    pub fn print(sum: &Mutex<Sum>, took: Duration) -> ExitCode {
        let sum = locked(sum);
        let took = took.as_secs_f64();
        println!(
            "{} worlds: {} acquisitions, {} troubles, {:.0} s simulated in {took:.1} s ({:.0} x), {} failed",
            sum.worlds,
            sum.acquisitions,
            sum.troubles,
            sum.simulated,
            sum.simulated / took,
            sum.failed.len()
        );
        for arguments in sum.failed.iter().take(20) {
            println!("failed: simulate {arguments}");
        }
        ExitCode::from(u8::from(!sum.failed.is_empty()))
    }
}

fn locked(sum: &Mutex<Sum>) -> MutexGuard<'_, Sum> {
    sum.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Worlds of many seeds.
pub fn many(options: &Options) -> ExitCode {
    let (began, sum) = (Instant::now(), Mutex::default());
    let next = AtomicU64::new(options.from);
    let last = options.seeds.map_or(u64::MAX, |seeds| options.from + seeds);
    let limit = options.seconds.map(Duration::from_secs);
    on_all(|| {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if is_over() {
            return false;
        }
        if seed >= last || limit.is_some_and(|limit| began.elapsed() >= limit) {
            return false;
        }
        run_seed(seed, options, &sum);
        true
    });
    Sum::print(&sum, began.elapsed())
}

/// A world that takes as long keeps others from being tried.
const SLOW: Duration = Duration::from_secs(20);

fn run_seed(seed: u64, options: &Options, sum: &Mutex<Sum>) {
    let engine = options.engine_of(seed).name();
    let mut arguments = vec![seed.to_string(), "--engine".into(), engine.into()];
    arguments.extend(options.smaller.arguments());
    let began = Instant::now();
    let mut first = child(&arguments);
    if began.elapsed() > SLOW {
        println!(
            "slow: simulate {} took {:.0?}",
            arguments.join(" "),
            began.elapsed()
        );
    }
    if options.is_twice && first.is_some() {
        let again = child(&arguments);
        if again != first {
            println!("two runs differ:\n{first:?}\n{again:?}");
            first = None;
        }
    }
    Sum::add(sum, first.as_ref(), &arguments, options);
}
