//! Very many at once: permits that are out, calls that wait in one line, namespaces.
//!
//! ```text
//! cargo bench --bench scale [-- PERMITS]
//! ```
//!
//! A private `redis-server` is started on one CPU, and the bench runs on another.
//!
//! - `permits`: PERMITS (8000) single permits are taken with a ttl of 3 s and held for three renewals of each. It says
//!   how many were lost, what acquire and release of one more cost beside them and beside 10 (medians of cycles that
//!   alternate), and what lock and unlock of another name take before and meanwhile.
//! - `line`: 3000 threads wait in `lock_all` of the same two names, with a ttl of 1 s, for longer than their
//!   heartbeats. Then the holder releases, and it says how many were served, how many twice, and how long all took.
//! - `namespaces`: one thread waits in each of 1000 namespaces of one locker. It says how many commands each sent
//!   beyond the one by which it found the lock taken and the one by which it released.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker, Semaphore};
use support::{Column, Counting, MAX, P50, P99, Round, Server, Subject, Table, ask};
use support::{column, connect, per, ratio_of};

const TTL: Duration = Duration::from_secs(3);
const WAITERS: usize = 3_000;
const NAMESPACES: usize = 1_000;

const PERMITS: [Column; 8] = [
    column("taken s", "taken s", P50, 1),
    column("lost", "lost", MAX, 0),
    column("one more us", "one more us", P50, 0),
    column("beside 10 us", "beside 10 us", P50, 0),
    ratio_of("one more us", "beside 10 us"),
    column("other name p99 us", "meanwhile us", P99, 0),
    column("before us", "before us", P99, 0),
    ratio_of("meanwhile us", "before us").of_part(P99),
];

const LINE: [Column; 4] = [
    column("in line", "in line", P50, 0),
    column("served", "served", P50, 0),
    column("s", "served s", P50, 1),
    column("most at once", "at once", MAX, 0),
];

const COMMANDS: [Column; 3] = [
    column("commands", "commands", P50, 0),
    column("scripts", "scripts", P50, 0),
    column("each beyond what is needed", "beyond", P50, 2),
];

fn main() {
    let permits = support::argument().unwrap_or(8_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    support::pin(&server);
    let url = server.tcp();
    let held = format!("{permits} held");
    once("permits", &held, &PERMITS, || many_permits(&url, permits));
    once("line", "3000 wait", &LINE, || long_line(&url));
    once("namespaces", "1000 wait", &COMMANDS, || {
        many_namespaces(&url)
    });
}

fn once(head: &str, name: &str, columns: &[Column], run: impl FnMut() -> Round) {
    let subject = Subject::new(name, run).to(name);
    Table::new(&[head], columns, 1).run(vec![subject]);
}

fn many_permits(url: &str, permits: u32) -> Round {
    let locker = Locker::builder(url).ttl(TTL).build().expect("a server");
    let stranger = Locker::open(url).expect("a server");
    let mut round = Round::default();
    bystander(&stranger, |time| round.micros("before us", time));
    let semaphore = |name, permits| locker.semaphore(name, permits).expect("a semaphore");
    let (few, many) = (semaphore("few", 100), semaphore("many", permits + 100));
    let acquire = |semaphore: &Semaphore| semaphore.acquire().expect("a permit");
    let _few: Vec<_> = (0..10).map(|_| acquire(&few)).collect();
    let began = Instant::now();
    let held: Vec<_> = (0..permits).map(|_| acquire(&many)).collect();
    round.add("taken s", began.elapsed().as_secs_f64());
    let held_from = Instant::now();
    for _ in 0..1_000 {
        for (semaphore, metric) in [(&few, "beside 10 us"), (&many, "one more us")] {
            let began = Instant::now();
            say(acquire(semaphore).unlock());
            round.micros(metric, began.elapsed());
        }
    }
    bystander(&stranger, |time| round.micros("meanwhile us", time));
    // Three renewals, each after a third of the ttl.
    thread::sleep(TTL.saturating_sub(held_from.elapsed()));
    let lost = held.iter().filter(|guard| guard.verify().is_err()).count();
    round.with("lost", per(lost, 1))
}

/// On a machine that is busy with other work, no answer may come in time.
fn say(unlocked: crosslock::Result<()>) {
    unlocked.unwrap_or_else(|e| eprintln!("{e}"));
}

/// Lock and unlock of another name.
fn bystander(locker: &Locker, mut add: impl FnMut(Duration)) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        let start = Instant::now();
        let guard = locker.lock("bystander").expect("a free lock");
        say(guard.unlock());
        add(start.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Two lockers of the same options: one whose calls wait, and the holder.
fn waiter_and_holder(url: &str, ttl: Duration) -> [Locker; 2] {
    [(); 2].map(|()| Locker::builder(url).ttl(ttl).build().expect("a server"))
}

/// How many have been served, are inside, and were inside at once.
#[derive(Default)]
struct Served {
    all: AtomicUsize,
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Served {
    fn lock_both(&self, locker: &Locker) {
        let both = locker.lock_all(&["one", "other"]).expect("both locks");
        let inside = self.inside.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(inside, SeqCst);
        self.all.fetch_add(1, SeqCst);
        self.inside.fetch_sub(1, SeqCst);
        drop(both);
    }
}

fn long_line(url: &str) -> Round {
    let [locker, holder] = waiter_and_holder(url, Duration::from_secs(1));
    let mut admin = connect(url);
    let mut line = || -> usize { ask(&mut admin, &["LLEN", "{crosslock:one}:queue"]) };
    let held = holder.lock_all(&["one", "other"]).expect("free locks");
    let served = Served::default();
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| served.lock_both(&locker));
        }
        while line() < WAITERS {
            thread::sleep(Duration::from_millis(10));
        }
        // Several heartbeats of each.
        thread::sleep(Duration::from_secs(6));
        held.check().expect("still held");
        let living = line();
        let began = Instant::now();
        held.unlock().expect("our locks");
        while served.all.load(SeqCst) < WAITERS && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(10));
        }
        Round::default()
            .with("in line", per(living, 1))
            .with("served", per(served.all.load(SeqCst), 1))
            .with("served s", began.elapsed().as_secs_f64())
            .with("at once", per(served.most.load(SeqCst), 1))
    })
}

fn many_namespaces(url: &str) -> Round {
    // So that no heartbeat falls into it.
    let [locker, holder] = waiter_and_holder(url, Duration::from_secs(300));
    let names: Vec<_> = (0..NAMESPACES).map(|number| format!("n{number}")).collect();
    let lock = |name: &String| {
        let locker = holder.with_namespace(name).expect("a namespace");
        locker.lock("one").expect("a free lock")
    };
    let held: Vec<_> = names.iter().map(lock).collect();
    let counting = Counting::start(vec![connect(url)]);
    wait_in_each(&locker, &names, held);
    let commands = counting.end().commands;
    let sent = |wanted: &str| -> usize {
        let wanted = |command: &str| wanted.split(' ').any(|one| one == command);
        let counts = commands.iter().filter(|(command, ..)| wanted(command));
        counts.map(|(_, count, _)| count).sum()
    };
    let all = sent("evalsha eval subscribe unsubscribe publish ping");
    // Each was found taken once, and released once by each side; a release publishes inside its script.
    let least = 3 * NAMESPACES;
    Round::default()
        .with("commands", per(all, 1))
        .with("scripts", per(sent("evalsha"), 1))
        .with("beyond", per(all.saturating_sub(least), NAMESPACES))
}

/// Each waits until the guards are dropped, and is served.
fn wait_in_each(locker: &Locker, names: &[String], held: Vec<LockGuard>) {
    let waiting = AtomicUsize::new(0);
    thread::scope(|scope| {
        for name in names {
            let (locker, waiting) = (locker.with_namespace(name).expect("a namespace"), &waiting);
            scope.spawn(move || {
                waiting.fetch_add(1, SeqCst);
                locker.lock("one").expect("the lock").unlock()
            });
        }
        while waiting.load(SeqCst) < names.len() {
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_secs(5));
        for guard in held {
            guard.unlock().expect("our lock");
        }
    });
}
