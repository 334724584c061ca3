//! Very many at once: permits that are out, calls that wait in one line, namespaces.
//!
//! ```text
//! cargo bench --bench scale [-- PERMITS]
//! ```
//!
//! A private `redis-server` is started on one CPU, and the bench runs on another.
//!
//! - `permits`: PERMITS (8000) single permits are taken with a ttl of 3 s and held for three renewals of each. It says how
//!   many were lost, what acquire and release of one more cost beside them and beside 10 (medians of cycles that
//!   alternate), and what lock and unlock of another name take before and meanwhile.
//! - `line`: 3000 threads wait in `lock_all` of the same two names, with a ttl of 1 s, for longer than their heartbeats.
//!   Then the holder releases, and it says how many were served, how many twice, and how long all took.
//! - `namespaces`: one thread waits in each of 1000 namespaces of one locker. It says how many commands each sent beyond
//!   the one by which it found the lock taken and the one by which it released.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker, Semaphore};
use redis::Connection;

use support::{Server, connect, percentile, pin};

const TTL: Duration = Duration::from_secs(3);
const WAITERS: usize = 3_000;
const NAMESPACES: usize = 1_000;

fn main() {
    let permits = support::argument().unwrap_or(8_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    pin(&server);
    many_permits(&server.tcp(), permits);
    long_line(&server.tcp());
    many_namespaces(&server.tcp());
}

fn many_permits(url: &str, permits: u32) {
    let locker = Locker::builder(url).ttl(TTL).build().expect("a server");
    let stranger = Locker::open(url).expect("a server");
    let quiet = bystander(&stranger, Duration::from_secs(2));
    let few = locker.semaphore("few", 100).expect("a semaphore");
    let many = locker
        .semaphore("many", permits + 100)
        .expect("a semaphore");
    let _few: Vec<_> = (0..10).map(|_| few.acquire().expect("a permit")).collect();
    let began = Instant::now();
    let held: Vec<_> = (0..permits)
        .map(|_| many.acquire().expect("a permit"))
        .collect();
    println!("permits: {permits} taken in {:.1?}", began.elapsed());
    let held_from = Instant::now();
    let cycles = (0..1_000).map(|_| (cycle(&few), cycle(&many))).unzip();
    let busy = bystander(&stranger, Duration::from_secs(2));
    // Three renewals, each after a third of the ttl.
    thread::sleep(TTL.saturating_sub(held_from.elapsed()));
    let lost = held.iter().filter(|guard| guard.verify().is_err()).count();
    println!("permits: {lost} lost after {:.1?}", held_from.elapsed());
    print_cycles(cycles);
    print_bystander(&quiet, &busy);
}

/// Of one more permit, beside a few and beside many.
fn print_cycles((mut few, mut many): (Vec<Duration>, Vec<Duration>)) {
    few.sort_unstable();
    many.sort_unstable();
    let (few, many) = (percentile(&few, 50), percentile(&many, 50));
    println!(
        "permits: one more takes {many:.0} us, beside 10 {few:.0} us: {:.2} x",
        many / few
    );
}

fn print_bystander(before: &[Duration], meanwhile: &[Duration]) {
    let [before, meanwhile] =
        [before, meanwhile].map(|times| [50, 99].map(|p| percentile(times, p)));
    println!(
        "permits: another name p50 {:.0} us, p99 {:.0} us; before {:.0} us, {:.0} us: p99 {:.2} x",
        meanwhile[0],
        meanwhile[1],
        before[0],
        before[1],
        meanwhile[1] / before[1]
    );
}

fn cycle(semaphore: &Semaphore) -> Duration {
    let began = Instant::now();
    let permit = semaphore.acquire().expect("a permit");
    permit.unlock().expect("our permit");
    began.elapsed()
}

/// Lock and unlock of another name, sorted.
fn bystander(locker: &Locker, length: Duration) -> Vec<Duration> {
    let (began, mut times) = (Instant::now(), Vec::new());
    while began.elapsed() < length {
        let start = Instant::now();
        let guard = locker.lock("bystander").expect("a free lock");
        guard.unlock().expect("our lock");
        times.push(start.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    times.sort_unstable();
    times
}

/// Two lockers of the same options: one whose calls wait, and the holder.
fn waiter_and_holder(url: &str, ttl: Duration) -> [Locker; 2] {
    let builder = Locker::builder(url).ttl(ttl);
    [builder.clone(), builder].map(|builder| builder.build().expect("a server"))
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

fn long_line(url: &str) {
    let [locker, holder] = waiter_and_holder(url, Duration::from_secs(1));
    let mut admin = connect(url);
    let held = holder.lock_all(&["one", "other"]).expect("free locks");
    let served = Served::default();
    thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| served.lock_both(&locker));
        }
        while line(&mut admin) < WAITERS {
            thread::sleep(Duration::from_millis(10));
        }
        // Several heartbeats of each.
        thread::sleep(Duration::from_secs(6));
        held.check().expect("still held");
        let living = line(&mut admin);
        let began = Instant::now();
        held.unlock().expect("our locks");
        while served.all.load(SeqCst) < WAITERS && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(10));
        }
        println!(
            "line: {living} in line, {} of {WAITERS} served in {:.1?}, at most {} at once",
            served.all.load(SeqCst),
            began.elapsed(),
            served.most.load(SeqCst)
        );
    });
}

/// How many stand in the line of the first name.
fn line(admin: &mut Connection) -> usize {
    let mut llen = redis::cmd("LLEN");
    llen.arg("{crosslock:one}:queue");
    llen.query(admin).expect("LLEN")
}

fn many_namespaces(url: &str) {
    // So that no heartbeat falls into it.
    let [locker, holder] = waiter_and_holder(url, Duration::from_secs(300));
    let names: Vec<_> = (0..NAMESPACES).map(|number| format!("n{number}")).collect();
    let lock = |name: &String| -> LockGuard {
        let locker = holder.with_namespace(name).expect("a namespace");
        locker.lock("one").expect("a free lock")
    };
    let held: Vec<_> = names.iter().map(lock).collect();
    let mut admin = connect(url);
    redis::cmd("CONFIG")
        .arg("RESETSTAT")
        .query::<()>(&mut admin)
        .expect("CONFIG RESETSTAT");
    wait_in_each(&locker, &names, held);
    let commands = "evalsha eval subscribe unsubscribe publish ping".split(' ');
    let sent: usize = commands.map(|command| calls(&mut admin, command)).sum();
    let scripts = calls(&mut admin, "evalsha");
    // Each was found taken once, and released once by each side; a release publishes inside its script.
    let least = 3 * NAMESPACES;
    println!(
        "namespaces: {sent} commands, {scripts} of them scripts, for {NAMESPACES} waiters: {:.2} each beyond what is needed",
        support::ratio(sent.saturating_sub(least), NAMESPACES)
    );
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

fn calls(admin: &mut Connection, command: &str) -> usize {
    let mut info = redis::cmd("INFO");
    let info: String = info.arg("commandstats").query(admin).expect("INFO");
    let start = format!("cmdstat_{command}:calls=");
    let found = info.lines().find_map(|line| line.strip_prefix(&start));
    found.map_or(0, |rest| {
        rest.split(',')
            .next()
            .and_then(|calls| calls.parse().ok())
            .expect("a count")
    })
}
