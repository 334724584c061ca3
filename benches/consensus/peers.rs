//! The locks of other libraries, on the same servers: etcd's Go package, and Curator. `benches/compare/measure.py`
//! describes the lines that their programs read and print.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::places::Places;
use super::shared::{
    Column, P50, Round, Subject, Table, column, cpu_time, cycles, ours, per, ratio,
};

/// The programs, each named in the environment.
const GO: &str = "CROSSLOCK_BENCH_GO";
const CURATOR: &str = "CROSSLOCK_BENCH_CURATOR";

const ROUNDS: usize = 10;

const COLUMNS: [Column; 6] = [
    column("lock us", "lock us", P50, 1),
    ratio("lock us"),
    column("unlock us", "unlock us", P50, 1),
    ratio("unlock us"),
    column("servers' CPU us", "servers us", P50, 1),
    ratio("servers us"),
];

pub(crate) fn are_named() -> bool {
    [GO, CURATOR].iter().all(|name| env::var_os(name).is_some())
}

/// Rounds of all subjects in turn, each against the peer before it.
pub(crate) fn run(places: &Places, all: usize) {
    let count = all / ROUNDS;
    let mut subjects = Vec::new();
    let etcd = (places.etcd_url(), places.etcd_pids());
    let zookeeper = (places.zookeeper_url(), places.zookeeper_pids());
    for (variable, peer, what, (url, servers)) in [
        (GO, "etcd, its Go package", "etcd, crosslock", etcd),
        (
            CURATOR,
            "zookeeper, Curator",
            "zookeeper, crosslock",
            zookeeper,
        ),
    ] {
        let program = env::var(variable).expect("a program");
        let mut client = Peer::start(&program, &hosts_of(&url));
        let pids = servers.clone();
        let run = move || counted(&pids, count, || client.round(count));
        subjects.push(Subject::new(peer, run).to(peer));
        let mut lock = cycles(count, ours(&url, "bench"));
        let run = move || counted(&servers, count, &mut lock);
        subjects.push(Subject::new(what, run).to(peer));
    }
    let table = Table::new(&["peers"], &COLUMNS, ROUNDS).after(1);
    table.run(subjects);
}

/// With what the servers have used for each cycle.
fn counted(servers: &[u32], cycles: usize, run: impl FnOnce() -> Round) -> Round {
    let before = cpu_time(servers);
    let round = run();
    let used = cpu_time(servers).saturating_sub(before);
    round.with("servers us", used.as_secs_f64() * 1e6 / per(cycles, 1))
}

/// `host:port,...` of a URL.
fn hosts_of(url: &str) -> String {
    let (_, hosts) = url.split_once("://").expect("a URL");
    hosts.split(['/', '?']).next().unwrap_or(hosts).to_owned()
}

/// A program that runs as many cycles as a line of its input says.
struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(command: &str, hosts: &str) -> Self {
        let mut words = command.split_whitespace();
        let mut process = Command::new(words.next().expect("a program"))
            .args(words)
            .args([hosts, "10000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a peer");
        Peer {
            input: process.stdin.take().expect("a pipe"),
            output: BufReader::new(process.stdout.take().expect("a pipe")),
            process,
        }
    }

    fn round(&mut self, count: usize) -> Round {
        writeln!(self.input, "free bench {count}").expect("a peer that runs");
        let mut round = Round::default();
        for line in self.output.by_ref().lines() {
            let line = line.expect("a peer that runs");
            if line.is_empty() {
                break;
            }
            let times = line.split_whitespace().zip(["lock us", "unlock us"]);
            for (nanoseconds, metric) in times {
                let nanoseconds = nanoseconds.parse().expect("a number");
                round.micros(metric, Duration::from_nanos(nanoseconds));
            }
        }
        round
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
