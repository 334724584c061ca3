//! Many processes that wait for one name of etcd: what they cost its servers while nothing happens, and how fast they
//! are served.
//!
//! ```text
//! cargo bench -p crosslock-tests --features etcd --bench crowd [-- [--ttl SECONDS] KIND WAITERS...]
//! ```
//!
//! KIND is `lock` (50 and 1000 waiters by default) or `permits` (50 and 300, for 4 permits). Three members of etcd are
//! started on this machine for each number. Each waiter has a `Locker` of its own, as a process of its own would have;
//! 50 of them share a process here. The ttl is the default one, unless it is given. `idle` is the CPU that the three
//! members use together, in percent of one core, without waiters and with them; `kept` whether all have kept their
//! places meanwhile. Then the holder releases, each waiter holds for 1 ms, and all are served: `requests` are those for
//! each acquisition.
//!
//! Compare numbers of one run, or of two builds that run in turn.

#[path = "support/mod.rs"]
mod shared;

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;
use shared::{Column, P50, Round, Subject, Table, column, cpu_time, option, per, words};
use support::{Etcd, EtcdCluster};

const ROLE: &str = "waiters";
const EACH: usize = 50;
const PERMITS: u32 = 4;
const HOLD: Duration = Duration::from_millis(1);
const SETTLE: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(600);

const COLUMNS: [Column; 7] = [
    column("idle % alone", "idle %", P50, 1),
    column("with them", "waiting %", P50, 1),
    column("kept", "kept", P50, 0),
    column("entered s", "entered s", P50, 1),
    column("served s", "served s", P50, 2),
    column("locks/s", "locks/s", P50, 0),
    column("requests", "requests", P50, 1),
];

fn main() {
    let arguments: Vec<String> = words().collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let crowds = match *arguments {
        [ROLE, url, kind, count] => return wait(url, kind, number(count)),
        [kind, ref counts @ ..] if !counts.is_empty() => {
            counts.iter().map(|count| (kind, number(count))).collect()
        }
        ["lock"] => vec![("lock", 50), ("lock", 1000)],
        ["permits"] => vec![("permits", 50), ("permits", 300)],
        _ => vec![
            ("lock", 50),
            ("lock", 1000),
            ("permits", 50),
            ("permits", 300),
        ],
    };
    let subject = |(kind, count)| {
        let name = format!("{kind}|{count}|{}", ttl());
        Subject::new(&name, move || measure(kind, count))
    };
    let table = Table::new(&["", "waiters", "ttl s"], &COLUMNS, 1);
    table.run(crowds.into_iter().map(subject).collect());
}

/// In seconds.
fn ttl() -> u64 {
    option("--ttl").unwrap_or(10)
}

fn open(url: &str) -> Locker {
    let builder = Locker::builder(url).ttl(Duration::from_secs(ttl()));
    builder.build().expect("it opens")
}

fn number(text: &str) -> usize {
    text.parse().expect("a number of waiters")
}

/// What a process of waiters does: all of them wait, and each holds once.
fn wait(url: &str, kind: &str, count: usize) {
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let guard = take(&open(url), kind, 1);
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

fn measure(kind: &str, count: usize) -> Round {
    let cluster = Etcd::setup().cluster(3);
    thread::sleep(SETTLE);
    let mut round = Round::default().with("idle %", idle(&cluster));
    let holder = take(&open(&cluster.url()), kind, PERMITS);
    let line = || cluster.member(0).keys("crosslock/crowd/w/");
    let (mut processes, began) = (Vec::new(), Instant::now());
    for first in (0..count).step_by(EACH) {
        let part = EACH.min(count - first);
        processes.push(start(&cluster.url(), kind, part));
        while line().len() <= first + part {
            let waits = began.elapsed() < PATIENCE;
            assert!(waits, "{} of {count} are in line", line().len());
            thread::sleep(Duration::from_millis(100));
        }
    }
    round.add("entered s", began.elapsed().as_secs_f64());
    thread::sleep(SETTLE);
    let places = line();
    round.add("waiting %", idle(&cluster));
    round.add("kept", f64::from(u8::from(line() == places)));
    let (began, before) = (Instant::now(), requests(&cluster));
    drop(holder);
    for mut process in processes {
        let status = process.wait().expect("its end");
        assert!(status.success(), "a waiter failed");
    }
    let served = began.elapsed().as_secs_f64();
    round
        .with("served s", served)
        .with("locks/s", per(count, 1) / served)
        .with("requests", per(requests(&cluster) - before, count))
}

fn requests(cluster: &EtcdCluster) -> usize {
    let services = ["KV\"", "Lease\"", "Watch\""];
    let of = |member: &Etcd| services.map(|service| member.requests(service));
    let sum = cluster.members().iter().flat_map(of).sum::<u64>();
    usize::try_from(sum).expect("not so many")
}

fn start(url: &str, kind: &str, count: usize) -> Child {
    let bench = std::env::current_exe().expect("the path of this bench");
    let mut command = Command::new(bench);
    command.args([ROLE, url, kind, &count.to_string()]);
    let command = command.args(["--ttl", &ttl().to_string()]);
    command.spawn().expect("a process")
}

/// The CPU that the servers use for a while, in percent of a core.
fn idle(cluster: &EtcdCluster) -> f64 {
    let pids: Vec<u32> = cluster.members().iter().map(|one| one.pid()).collect();
    let (began, before) = (Instant::now(), cpu_time(&pids));
    thread::sleep(IDLE);
    let used = cpu_time(&pids).saturating_sub(before);
    100.0 * used.as_secs_f64() / began.elapsed().as_secs_f64()
}
