//! Four processes that want one lock.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::server::Server;
use crate::subject::{Client, Subject};
use crate::{median, shuffled};

const ROLE: &str = "contender";
pub const PROCESSES: usize = 4;
pub const ROUNDS: usize = 3;
pub const HOLD: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_secs(10);

/// When it was asked for, had, and about to be released, in nanoseconds of the clock that all processes share.
pub type Cycle = [u64; 3];

/// What came out of one round.
pub struct Round {
    pub acquisitions: f64,
    hand_offs: f64,
    pub fairness: f64,
    pub commands: f64,
    connections: f64,
    pub overlaps: usize,
}

impl Round {
    pub fn of(logs: &[Vec<Cycle>], length: Duration, commands: f64, connections: f64) -> Self {
        let of_process = |(process, log): (usize, &Vec<Cycle>)| {
            let cycles = log.iter().map(move |cycle| (*cycle, process));
            cycles.collect::<Vec<_>>()
        };
        let mut all: Vec<(Cycle, usize)> = logs.iter().enumerate().flat_map(of_process).collect();
        all.sort_unstable_by_key(|([_, had, _], _)| *had);
        let pairs = || all.windows(2);
        let served: Vec<usize> = logs.iter().map(Vec::len).collect();
        let (least, most) = (served.iter().min(), served.iter().max());
        let (count, seconds) = (all.len() as f64, length.as_secs_f64());
        Round {
            acquisitions: count / seconds,
            hand_offs: pairs().filter(|pair| pair[0].1 != pair[1].1).count() as f64 / seconds,
            fairness: *least.expect("workers") as f64 / *most.expect("workers") as f64,
            commands: commands / count,
            connections: connections / count,
            overlaps: pairs().filter(|pair| pair[1].0[1] < pair[0].0[2]).count(),
        }
    }
}

pub fn run(server: &Server, seconds: f64) {
    let length = Duration::from_secs_f64(seconds / ROUNDS as f64);
    let mut rounds: HashMap<&str, Vec<Round>> = HashMap::new();
    let mut waits: HashMap<&str, Vec<f64>> = HashMap::new();
    for round in 0..ROUNDS {
        for subject in shuffled(&Subject::ALL, round) {
            let waited = waits.entry(subject.name()).or_default();
            let result = contend(server, subject, length, waited);
            rounds.entry(subject.name()).or_default().push(result);
        }
    }
    println!("\nContended: {PROCESSES} processes, each holds for {HOLD:?}\n");
    println!(
        "| lock | acquisitions/s | to another process/s | least / most served \
         | waits p50, p99, max | commands | connections | overlaps |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for subject in Subject::ALL {
        let rounds = &rounds[subject.name()];
        let of = |field: fn(&Round) -> f64| median(rounds.iter().map(field));
        let mut waits = waits.remove(subject.name()).expect("waits");
        waits.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize];
        println!(
            "| {} | {:.0} | {:.0} | {:.2} | {:.1}, {:.1}, {:.0} ms | {:.2} | {:.2} | {} |",
            subject.name(),
            of(|round| round.acquisitions),
            of(|round| round.hand_offs),
            of(|round| round.fairness),
            at(0.5),
            at(0.99),
            at(1.0),
            of(|round| round.commands),
            of(|round| round.connections),
            rounds.iter().map(|round| round.overlaps).sum::<usize>(),
        );
    }
}

fn contend(server: &Server, subject: Subject, length: Duration, waits: &mut Vec<f64>) -> Round {
    let mut before = None;
    let work = || server.work(subject == Subject::Crosslock);
    let begin = || before = Some(work());
    let logs = logs(subject, &server.url, &server.directory, length, begin);
    let (before, after) = (before.expect("it began"), work());

    waits.extend(
        logs.iter()
            .flatten()
            .map(|[asked, had, _]| (had - asked) as f64 / 1e6),
    );
    let commands = after.commands - before.commands;
    // The second question has one, too.
    let connections = after.connections - before.connections - 1;
    Round::of(&logs, length, commands as f64, connections as f64)
}

/// What each of the processes did for so long. `begin` is called when they are ready.
pub fn logs(
    subject: Subject,
    url: &str,
    directory: &Path,
    length: Duration,
    begin: impl FnOnce(),
) -> Vec<Vec<Cycle>> {
    let spawn = |_| spawn(subject, url, directory);
    let mut workers: Vec<Child> = (0..PROCESSES).map(spawn).collect();
    for worker in &mut workers {
        worker
            .stdout
            .as_mut()
            .expect("a pipe")
            .read_exact(&mut [0])
            .expect("a worker that is ready");
    }
    begin();
    let begin = monotonic() + 20_000_000;
    let end = begin + u64::try_from(length.as_nanos()).expect("a short time");
    for worker in &mut workers {
        let input = worker.stdin.as_mut().expect("a pipe");
        let times = [begin.to_le_bytes(), end.to_le_bytes()].concat();
        input.write_all(&times).expect("a worker that listens");
    }
    workers.into_iter().map(log_of).collect()
}

fn spawn(subject: Subject, url: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args([ROLE, subject.name(), url])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

fn log_of(mut worker: Child) -> Vec<Cycle> {
    let mut log = Vec::new();
    worker
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_to_end(&mut log)
        .expect("a log");
    assert!(worker.wait().expect("its end").success(), "a worker failed");
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    log.chunks_exact(24)
        .map(|cycle| [0, 8, 16].map(|at| number(&cycle[at..at + 8])))
        .collect()
}

/// Does the work of a worker if this process is one, and says whether it was.
pub fn serve(arguments: &[String]) -> bool {
    let [role, subject, url, directory] = arguments else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).expect("a timer");
    let subject = Subject::parse(subject).expect("a subject");
    let directory = Path::new(directory);
    // Connects and loads scripts.
    let own = format!("own-{}", std::process::id());
    let mut warm = subject.client(url, directory, &own, TTL);
    warm.lock();
    warm.unlock();
    let mut client = subject.client(url, directory, &format!("{subject:?}"), TTL);
    let mut output = std::io::stdout().lock();
    output
        .write_all(&[1])
        .and_then(|()| output.flush())
        .expect("a parent");
    let mut times = [0; 16];
    std::io::stdin()
        .lock()
        .read_exact(&mut times)
        .expect("a parent");
    let [begin, end] =
        [0, 8].map(|at| u64::from_le_bytes(times[at..at + 8].try_into().expect("8 bytes")));
    thread::sleep(Duration::from_nanos(begin.saturating_sub(monotonic())));
    let log = work(client.as_mut(), end);
    output.write_all(log.as_flattened()).expect("a parent");
    true
}

/// Locks, holds and unlocks until `end`.
fn work(client: &mut dyn Client, end: u64) -> Vec<[u8; 8]> {
    let mut log = Vec::with_capacity(1 << 16);
    while monotonic() < end {
        let asked = monotonic();
        client.lock();
        let had = monotonic();
        thread::sleep(HOLD);
        let released = monotonic();
        client.unlock();
        log.extend([asked, had, released].map(u64::to_le_bytes));
    }
    log
}

pub fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = now.tv_sec * 1_000_000_000 + now.tv_nsec;
    nanos
        .try_into()
        .expect("a host that was started not long ago")
}
