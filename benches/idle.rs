//! How long a lock that is released takes to wake who waits for it in another process, when all was quiet before.
//!
//! ```text
//! cargo bench --bench idle [-- ROUNDS]
//! ```
//!
//! A private `redis-server` is started, and a process that waits for a lock which this one holds. After 100 ms in which
//! nothing happens it is released; what counts is from before `unlock` here until after `lock` there. So many ROUNDS
//! (200) are interleaved with as many round trips of a PING, each after as much quiet, by a connection of this process.
//!
//! How to read it: `ratio` is against the median PING. A release takes half a round trip to the server, runs a script
//! there that a PING doesn't need, and half a round trip to the other process. `others` are threads of the waiting
//! process that wait for other locks meanwhile.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use crosslock::Locker;
use support::{Column, P50, Round, Server, Subject, Table, ask, column, connect, monotonic, ratio};

const QUIET: Duration = Duration::from_millis(100);

/// How many other threads wait beside the one that is measured.
const OTHERS: [usize; 3] = [0, 1, 8];

/// The first argument of a process that waits.
const ROLE: &str = "waiter";

const COLUMNS: [Column; 3] = [
    column("p50 us", "time us", P50, 0),
    column("p90 us", "time us", 900, 0),
    ratio("time us"),
];

fn main() {
    if serve() {
        return;
    }
    let rounds: usize = support::argument().unwrap_or(200);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    let url = server.tcp();
    let lock = Locker::open(&url).expect("a server");
    let _guards: Vec<_> = (0..OTHERS[OTHERS.len() - 1])
        .map(|n| lock.lock(&format!("other {n}")).expect("a free lock"))
        .collect();
    let mut subjects = vec![ping(&url)];
    subjects.extend(OTHERS.map(|others| {
        let mut waiter = Waiter::spawn(&url, others);
        let name = format!("unlock to lock, {others} others");
        let lock = lock.clone();
        Subject::new(&name, move || waiter.wake(&lock)).to("PING")
    }));
    let table = Table::new(&[""], &COLUMNS, rounds);
    table.run(subjects);
}

fn ping(url: &str) -> Subject<'static> {
    let mut admin = connect(url);
    let ping = move || {
        thread::sleep(QUIET);
        let begun = monotonic();
        ask::<()>(&mut admin, &["PING"]);
        since(begun, monotonic())
    };
    Subject::new("PING", ping).to("PING")
}

fn since(begun: Duration, ended: Duration) -> Round {
    let mut round = Round::default();
    round.micros("time us", ended - begun);
    round
}

/// A process that waits for a lock of its own whenever it is told to.
struct Waiter {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    name: String,
    admin: redis::Connection,
}

impl Waiter {
    fn spawn(url: &str, others: usize) -> Self {
        let name = format!("beside {others}");
        let bench = std::env::current_exe().expect("the path of this bench");
        let mut child = Command::new(bench)
            .args([ROLE, url, &name, &others.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        Waiter {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            name,
            admin: connect(url),
        }
    }

    /// From before the release to after the acquisition.
    fn wake(&mut self, lock: &Locker) -> Round {
        let guard = lock.lock(&self.name).expect("a free lock");
        self.input.write_all(b"\n").expect("a waiter");
        let waiters = format!("{{crosslock:{}}}:waiters", self.name);
        let is_there = |all: Vec<String>| all.iter().any(|one| one.contains(":inbox:"));
        while !is_there(ask(&mut self.admin, &["HVALS", &waiters])) {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(QUIET);
        let begun = monotonic();
        guard.unlock().expect("our lock");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a waiter");
        let got: u64 = line.trim().parse().expect("nanoseconds");
        since(begun, Duration::from_nanos(got))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does the work of a waiter if this process is one, and says whether it was.
fn serve() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, url, name, others] = &arguments[..] else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    // Heartbeats are minutes away.
    let lock = Locker::builder(url).ttl(Duration::from_secs(600)).build();
    let lock = lock.expect("a server");
    for n in 0..others.parse().expect("a number") {
        let lock = lock.clone();
        // It waits until the bench ends.
        thread::spawn(move || lock.lock(&format!("other {n}")).map(drop));
    }
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    while matches!(input.read_line(&mut String::new()), Ok(1..)) {
        let guard = lock.lock(name).expect("the lock");
        let got = monotonic();
        guard.unlock().expect("our lock");
        writeln!(output, "{}", got.as_nanos()).expect("a parent");
        output.flush().expect("a parent");
    }
    true
}
