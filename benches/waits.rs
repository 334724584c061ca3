//! How long it takes another process to learn what it waits for: a lock, a value, to lead, who leads.
//!
//! ```text
//! cargo bench --bench waits [-- ROUNDS]
//! ```
//!
//! A private `redis-server` is started, and a process for each row that waits while nothing happens for 20 ms. What
//! counts is from before this process releases until after the other's call has returned. So many ROUNDS (300) of all
//! rows take turns.
//!
//! How to read it: `ratio` is against the hand-off of a lock. `value of the next` is the same for a lock whose value is
//! read with it. `wait_while` has to take the lock behind its message. Who leads is told when the next one leads, which
//! waits in the observer's process.

mod support;

use std::io::{BufRead, BufReader, Lines, StdinLock, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use crosslock::{Leadership, LockGuard, Locker, MutexGuard};
use support::{Column, P50, Round, Server, Subject, Table, column, monotonic, ratio};

const QUIET: Duration = Duration::from_millis(20);

/// The first argument of a process that waits.
const ROLE: &str = "waiter";

const COLUMNS: [Column; 3] = [
    column("p50 us", "time us", P50, 0),
    column("p90 us", "time us", 900, 0),
    ratio("time us"),
];

/// What is waited for.
#[derive(Clone, Copy)]
enum Kind {
    Lock,
    Value,
    Change,
    Lead,
    Observe,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Lock, "hand-off"),
    (Kind::Value, "value of the next"),
    (Kind::Change, "wait_while"),
    (Kind::Lead, "campaign, after resign"),
    (Kind::Observe, "observe, after resign"),
];

fn main() {
    if serve() {
        return;
    }
    let rounds: usize = support::argument().unwrap_or(300);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    let url = server.tcp();
    let lock = open(&url);
    let subjects = KINDS.map(|(kind, name)| {
        let (mut waiter, lock) = (Waiter::spawn(&url, name), lock.clone());
        let round = move || {
            let mut round = Round::default();
            round.micros("time us", waiter.round(kind, name, &lock));
            round
        };
        Subject::new(name, round).to(KINDS[0].1)
    });
    Table::new(&[""], &COLUMNS, rounds).run(subjects.into());
}

/// Heartbeats are minutes away.
fn open(url: &str) -> Locker {
    let lock = Locker::builder(url).ttl(Duration::from_secs(600)).build();
    lock.expect("a server")
}

/// What this process releases.
enum Held {
    Lock(LockGuard),
    Value(MutexGuard<u64>),
    Leadership(Leadership),
}

impl Held {
    fn release(self) {
        match self {
            Held::Lock(guard) => guard.unlock(),
            Held::Value(guard) => MutexGuard::unlock(guard),
            Held::Leadership(leadership) => leadership.resign(),
        }
        .expect("our lock");
    }
}

/// A process that waits whenever it is told to.
struct Waiter {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Waiter {
    fn spawn(url: &str, name: &str) -> Self {
        let bench = std::env::current_exe().expect("the path of this bench");
        let mut child = Command::new(bench)
            .args([ROLE, url, name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        Waiter {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        }
    }

    fn tell(&mut self) {
        self.input.write_all(b"\n").expect("a waiter");
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a waiter");
        line
    }

    /// From before the release to when the other knows.
    fn round(&mut self, kind: Kind, name: &str, lock: &Locker) -> Duration {
        let value = || lock.mutex(name, 0u64).expect("a name").lock();
        let election = lock.election(name).expect("a name");
        let held = match kind {
            Kind::Lock => Some(Held::Lock(lock.lock(name).expect("a free lock"))),
            Kind::Value => Some(Held::Value(value().expect("a free lock"))),
            Kind::Change => None,
            Kind::Lead | Kind::Observe => {
                Some(Held::Leadership(election.campaign().expect("nobody leads")))
            }
        };
        self.tell();
        self.hear();
        thread::sleep(QUIET);
        // A processor that slept is slow for a moment: the last act before each release is a lock.
        let held = match held {
            Some(held) => lock.lock("another").map(|_| held).expect("a free lock"),
            None => {
                let mut guard = value().expect("a free lock");
                *guard += 1;
                Held::Value(guard)
            }
        };
        let begun = monotonic();
        held.release();
        let got: u64 = self.hear().trim().parse().expect("nanoseconds");
        // It is released there, too.
        self.hear();
        Duration::from_nanos(got) - begun
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
    let [role, url, name] = &arguments[..] else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    let kind = KINDS.iter().find(|(_, known)| known == name);
    let (kind, _) = kind.expect("a row");
    let mut orders = std::io::stdin().lines();
    let lock = open(url);
    match kind {
        Kind::Lock => each(&mut orders, || {
            say("waits");
            now(lock.lock(name).expect("the lock"))
        }),
        Kind::Value => each(&mut orders, || {
            let value = lock.mutex(name, 0u64).expect("a name");
            say("waits");
            now(value.lock().expect("the lock"))
        }),
        Kind::Change => each(&mut orders, || now(await_change(&lock, name))),
        Kind::Lead => each(&mut orders, || {
            say("waits");
            let election = lock.election(name).expect("a name");
            now(election.campaign().expect("to lead"))
        }),
        Kind::Observe => each(&mut orders, || follow(&lock, &open(url), name)),
    }
    true
}

fn say(line: impl std::fmt::Display) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").expect("a parent");
    output.flush().expect("a parent");
}

/// Waits with each order, and tells when it was over.
fn each<T>(orders: &mut Lines<StdinLock<'static>>, mut wait: impl FnMut() -> (Duration, T)) {
    while let Some(Ok(_)) = orders.next() {
        let (known, got) = wait();
        say(known.as_nanos());
        drop(got);
        say("released");
    }
}

fn now<T>(got: T) -> (Duration, T) {
    (monotonic(), got)
}

fn await_change(lock: &Locker, name: &str) -> MutexGuard<u64> {
    let value = lock.mutex(name, 0u64).expect("a name");
    let guard = value.lock().expect("a free lock");
    let seen = *guard;
    let mut is_first = true;
    let changed = MutexGuard::wait_while(guard, |value| {
        if std::mem::take(&mut is_first) {
            say("waits");
        }
        *value == seen
    });
    changed.expect("a change")
}

/// Gives when it knows of the next leader.
fn follow(lock: &Locker, other: &Locker, name: &str) -> (Duration, Leadership) {
    let leaders = lock
        .election(name)
        .expect("a name")
        .observe()
        .expect("a thread");
    let leader = || leaders.recv().expect("an observer");
    let first = leader().expect("one leads").token;
    let next = other.election(name).expect("a name");
    thread::scope(|scope| {
        let campaign = scope.spawn(move || next.campaign().expect("to lead"));
        say("waits");
        while leader().is_none_or(|leader| leader.token == first) {}
        let known = monotonic();
        (known, campaign.join().expect("it leads"))
    })
}
