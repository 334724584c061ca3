//! Many processes that wait for one name of etcd: what they cost its servers while nothing happens, and how fast they are served.
//!
//! ```text
//! cargo bench -p crosslock-tests --features etcd --bench crowd [-- [--ttl SECONDS] KIND WAITERS...]
//! ```
//!
//! KIND is `lock` (50 and 1000 waiters by default) or `permits` (50 and 300, for 4 permits). Three members of etcd are started on this
//! machine for each number. Each waiter has a `Locker` of its own, as a process of its own would have; 50 of them share a
//! process here. The ttl is the default one, unless it is given. `idle` is the CPU that the three members use together, in percent of one core, without waiters and with them; `kept` whether
//! all have kept their places meanwhile. Then the holder releases, each waiter holds for 1 ms, and all are served: `requests` are those
//! for each acquisition.
//!
//! Compare numbers of one run, or of two builds that run in turn.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;
use support::{Etcd, EtcdCluster};

const ROLE: &str = "waiters";
const EACH: usize = 50;
const DEFAULT_TTL: &str = "10";
const PERMITS: u32 = 4;
const HOLD: Duration = Duration::from_millis(1);
const SETTLE: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(600);

fn main() {
    // Cargo says that it is a bench.
    let arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (ttl, arguments) = match arguments[..] {
        ["--ttl", ttl, ref others @ ..] => (ttl, others),
        ref all => (DEFAULT_TTL, all),
    };
    match *arguments {
        [ROLE, url, kind, count] => wait(&opened(url, ttl), kind, number(count)),
        [kind @ ("lock" | "permits"), ref counts @ ..] if counts.iter().all(is_number) => {
            counts
                .iter()
                .for_each(|count| measure(kind, number(count), ttl));
        }
        _ => {
            let all = [("lock", [50, 1000]), ("permits", [50, 300])];
            all.into_iter().for_each(|(kind, counts)| {
                counts
                    .into_iter()
                    .for_each(|count| measure(kind, count, ttl))
            });
        }
    }
}

/// A way to open a locker with such a ttl.
fn opened(url: &str, ttl: &str) -> impl Fn() -> Locker + Sync {
    let ttl = Duration::from_secs(ttl.parse().expect("a number of seconds"));
    move || Locker::builder(url).ttl(ttl).build().expect("it opens")
}

fn is_number(text: &&str) -> bool {
    text.parse::<usize>().is_ok()
}

fn number(text: &str) -> usize {
    text.parse().expect("a number of waiters")
}

/// What a process of waiters does: all of them wait, and each holds once.
fn wait(open: &(impl Fn() -> Locker + Sync), kind: &str, count: usize) {
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let guard = take(&open(), kind, 1);
                thread::sleep(HOLD);
                drop(guard);
            });
        }
    });
}

/// Anything that holds, and lets go when it is dropped.
fn take(locker: &Locker, kind: &str, count: u32) -> Box<dyn Send> {
    if kind == "lock" {
        let guard = locker.try_lock_for("crowd", PATIENCE);
        return Box::new(guard.expect("it answers").expect("its turn"));
    }
    let semaphore = locker.semaphore("crowd", PERMITS).expect("it is possible");
    let guard = semaphore.try_acquire_many_for(count, PATIENCE);
    Box::new(guard.expect("it answers").expect("its turn"))
}

fn measure(kind: &str, count: usize, ttl: &str) {
    let cluster = Etcd::setup().cluster(3);
    thread::sleep(SETTLE);
    let alone = idle(&cluster);
    let holder = take(&opened(&cluster.url(), ttl)(), kind, PERMITS);
    let line = || cluster.member(0).keys("crosslock/crowd/w/");
    let (mut processes, began) = (Vec::new(), Instant::now());
    for first in (0..count).step_by(EACH) {
        let part = EACH.min(count - first);
        processes.push(start(&cluster.url(), kind, part, ttl));
        while line().len() <= first + part {
            let waits = began.elapsed() < PATIENCE;
            assert!(waits, "{} of {count} are in line", line().len());
            thread::sleep(Duration::from_millis(100));
        }
    }
    let entered = began.elapsed();
    thread::sleep(SETTLE);
    let places = line();
    let waiting = idle(&cluster);
    let kept = line() == places;
    let requests = || -> u64 {
        let members = cluster.members().iter();
        let services = ["KV\"", "Lease\"", "Watch\""];
        members
            .flat_map(|one| services.map(|service| one.requests(service)))
            .sum()
    };
    let (began, before) = (Instant::now(), requests());
    drop(holder);
    processes.iter_mut().for_each(await_end);
    let served = began.elapsed();
    let requests = requests() - before;
    println!(
        "{kind:8} {count:5} waiters, ttl {ttl} s: idle {alone:5.1} % alone, {waiting:5.1} % with them; kept {kept}; entered in {entered:.1?}; \
         served in {served:.2?}, {:.0}/s; {:.1} requests",
        ratio(count, served.as_secs_f64()),
        ratio(usize::try_from(requests).expect("not so many"), 1.0) / ratio(count, 1.0),
    );
    std::io::stdout().flush().expect("an output");
}

#[expect(clippy::cast_precision_loss)]
fn ratio(count: usize, of: f64) -> f64 {
    count as f64 / of
}

fn start(url: &str, kind: &str, count: usize, ttl: &str) -> Child {
    let bench = std::env::current_exe().expect("the path of this bench");
    let mut command = Command::new(bench);
    command.args(["--ttl", ttl, ROLE, url, kind, &count.to_string()]);
    command.stdout(Stdio::piped()).spawn().expect("a process")
}

fn await_end(process: &mut Child) {
    let mut text = String::new();
    let output = process.stdout.as_mut().expect("a pipe");
    output.read_to_string(&mut text).expect("its output");
    assert!(
        process.wait().expect("its end").success(),
        "a waiter failed"
    );
}

/// The CPU that the servers use for a while, in percent of a core.
fn idle(cluster: &EtcdCluster) -> f64 {
    let used = || {
        cluster
            .members()
            .iter()
            .map(|one| cpu_of(one.pid()))
            .sum::<f64>()
    };
    let (began, before) = (Instant::now(), used());
    thread::sleep(IDLE);
    100.0 * (used() - before) / began.elapsed().as_secs_f64()
}

/// Seconds of CPU that a process has used.
fn cpu_of(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, fields) = text.rsplit_once(") ").expect("its name");
    let times = fields.split(' ').skip(11).take(2);
    // The kernel counts hundredths for user space.
    times
        .map(|time| time.parse::<f64>().expect("a time") / 100.0)
        .sum()
}
