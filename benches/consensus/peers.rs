//! The locks of other libraries, on the same servers: etcd's Go package, and Curator.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::alone::ours;
use super::places::Places;
use super::shared::percentile;

/// The programs, each named in the environment.
const GO: &str = "CROSSLOCK_BENCH_GO";
const CURATOR: &str = "CROSSLOCK_BENCH_CURATOR";

const ROUNDS: usize = 10;
/// How many cycles of each subject aren't measured.
const FIRST: usize = 100;

/// A client of one kind, and what its cycles took.
struct Subject {
    what: &'static str,
    cycles: Box<dyn FnMut(usize) -> Vec<[Duration; 2]>>,
    servers: Vec<u32>,
    times: [Vec<Duration>; 2],
    /// Nanoseconds of CPU that the servers used.
    cpu: u64,
}

pub(crate) fn are_named() -> bool {
    [GO, CURATOR].iter().all(|name| env::var_os(name).is_some())
}

/// Rounds of all subjects in turn, each against the peer before it.
pub(crate) fn run(places: &Places, cycles: usize) {
    let etcd = (places.etcd_url(), places.etcd_pids());
    let zookeeper = (places.zookeeper_url(), places.zookeeper_pids());
    let mut subjects = Vec::new();
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
        let cycles = Peer::start(&program, &hosts_of(&url)).into_cycles();
        subjects.push(Subject::new(peer, cycles, &servers));
        let mut cycle = ours(&url);
        let cycles = move |count| (0..count).map(|_| cycle()).collect();
        subjects.push(Subject::new(what, Box::new(cycles), &servers));
    }
    for round in 0..=ROUNDS {
        let count = if round == 0 { FIRST } else { cycles / ROUNDS };
        for subject in &mut subjects {
            subject.run(count, round > 0);
        }
    }
    report(&mut subjects);
}

/// `host:port,...` of a URL.
fn hosts_of(url: &str) -> String {
    let (_, hosts) = url.split_once("://").expect("a URL");
    hosts.split(['/', '?']).next().unwrap_or(hosts).to_owned()
}

impl Subject {
    fn new(
        what: &'static str,
        cycles: Box<dyn FnMut(usize) -> Vec<[Duration; 2]>>,
        servers: &[u32],
    ) -> Self {
        Subject {
            what,
            cycles,
            servers: servers.to_vec(),
            times: Default::default(),
            cpu: 0,
        }
    }

    fn run(&mut self, count: usize, record: bool) {
        let before = self.cpu_time();
        let times = (self.cycles)(count);
        if record {
            self.cpu += self.cpu_time() - before;
            for [lock, unlock] in times {
                self.times[0].push(lock);
                self.times[1].push(unlock);
            }
        }
    }

    /// What all threads of the servers have used, in nanoseconds.
    fn cpu_time(&self) -> u64 {
        let tasks = self.servers.iter().flat_map(|server| {
            let tasks = fs::read_dir(format!("/proc/{server}/task"));
            tasks.expect("a server").map_while(Result::ok)
        });
        let times = tasks.filter_map(|task| {
            // A thread may have ended.
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        times.sum()
    }
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
            .arg(hosts)
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

    fn into_cycles(mut self) -> Box<dyn FnMut(usize) -> Vec<[Duration; 2]>> {
        Box::new(move |count| {
            writeln!(self.input, "{count}").expect("a peer that runs");
            (0..count).map(|_| self.times()).collect()
        })
    }

    fn times(&mut self) -> [Duration; 2] {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a peer that runs");
        let mut numbers = line.split_whitespace().map(|number| number.parse());
        [(); 2].map(|()| {
            let nanoseconds = numbers.next().expect("two numbers").expect("a number");
            Duration::from_nanos(nanoseconds)
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn report(subjects: &mut [Subject]) {
    let mut least = [0.0; 3];
    for (number, subject) in subjects.iter_mut().enumerate() {
        subject
            .times
            .iter_mut()
            .for_each(|times| times.sort_unstable());
        #[expect(clippy::cast_precision_loss)]
        let cpu = subject.cpu as f64 / 1_000.0 / subject.times[0].len() as f64;
        let [lock, unlock] = [0, 1].map(|step| percentile(&subject.times[step], 50));
        if number % 2 == 0 {
            least = [lock, unlock, cpu];
        }
        println!(
            "{:<26} lock {lock:>7.1} us ({:.2}), unlock {unlock:>7.1} us ({:.2}), servers' CPU {cpu:>7.1} us ({:.2})",
            subject.what,
            lock / least[0],
            unlock / least[1],
            cpu / least[2],
        );
    }
}
