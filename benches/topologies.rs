//! One thread, free locks: what a cycle of lock and unlock costs on one server, by Sentinel, and in a cluster.
//!
//! ```text
//! cargo bench --bench topologies [-- CYCLES]
//! ```
//!
//! A server, a master with three sentinels, and a cluster of three masters are started, none with replicas. All servers share
//! one CPU, and this process has the other. One cycle of each subject is run after the other, in an order that changes each
//! time, so that noise meets them alike; read the ratios, not the times.
//!
//! `PING` is two round trips that do nothing, and `scripts` are the two scripts of this crate, both sent by a connection of
//! the `redis` crate to the server that has the lock: what these cost more in a cluster is the servers'. `ratio` is
//! against the same on one server, and of `lock_all` in a cluster against three names on one slot. `above` is what
//! `crosslock` takes beyond `scripts`, the library's part. `evalsha` are the commands of a cycle, and `rounds` those at the
//! server that has most of them. `lock_all` on 3 masters takes two round trips more: it asks one after the other, and raises and
//! unlocks on all at once.

#[path = "../src/engine/redis/lua.rs"]
mod lua;
mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker};
use redis::Connection;

use support::{Counting, Place, ask, connect, percentile, pin_places};

/// How many cycles of each subject aren't measured: they load scripts and warm caches.
const FIRST: usize = 50;

/// How many cycles the commands are counted of.
const COUNTED: usize = 100;

const NAME: &str = "bench";
const KEY: &str = "{crosslock:bench}";

fn main() {
    let cycles = support::argument().unwrap_or(5_000_usize);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = [Place::single, Place::sentinels, Place::cluster];
    let places = start.map(|start| start(directory.path()));
    pin_places(&places);
    // Apart from each other: what is at one place only would keep that place warm.
    let mut alone: Vec<Subject> = places.iter().flat_map(alone).collect();
    run(&mut alone, cycles);
    report(&mut alone);
    let mut several = several(&places[0], &places[2]);
    run(&mut several, cycles);
    report(&mut several);
}

fn run(subjects: &mut [Subject], cycles: usize) {
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for cycle in 0..FIRST + cycles {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            subjects[subject].run(cycle >= FIRST);
        }
    }
}

struct Subject {
    what: &'static str,
    place: &'static str,
    /// How far in front the subject stands that it is compared with.
    against: usize,
    cycle: Box<dyn FnMut()>,
    servers: Vec<Connection>,
    times: Vec<Duration>,
}

impl Subject {
    fn new(
        what: &'static str,
        place: &Place,
        against: usize,
        cycle: impl FnMut() + 'static,
    ) -> Self {
        Subject {
            what,
            place: place.kind,
            against,
            cycle: Box::new(cycle),
            servers: place.admins(),
            times: Vec::new(),
        }
    }

    fn run(&mut self, record: bool) {
        let start = Instant::now();
        (self.cycle)();
        if record {
            self.times.push(start.elapsed());
        }
    }

    /// Scripts of a cycle, and those at the server that runs most.
    fn commands(&mut self) -> [f64; 2] {
        let counting = Counting::start(std::mem::take(&mut self.servers));
        (0..COUNTED).for_each(|_| (self.cycle)());
        let usage = counting.end();
        [usage.evalsha, usage.most].map(|count| support::ratio(count, COUNTED))
    }
}

/// Of one name, the same three at each place.
fn alone(place: &Place) -> Vec<Subject> {
    let server = place.server_of(KEY).tcp();
    let against = match place.kind {
        "one server" => 0,
        "Sentinel" => 3,
        _ => 6,
    };
    vec![
        Subject::new("PING, twice", place, against, pings(&server)),
        Subject::new("scripts", place, against, scripts_alone(&server)),
        Subject::new("crosslock", place, against, ours(&place.url(0))),
    ]
}

fn several(single: &Place, cluster: &Place) -> Vec<Subject> {
    let together = ["{bench}:1", "{bench}:2", "{bench}:3"].map(str::to_owned);
    let apart = cluster.names(3);
    vec![
        Subject::new(
            "lock_all of 3",
            single,
            0,
            all(&single.url(0), "", &together),
        ),
        Subject::new(
            "  on one slot",
            cluster,
            0,
            all(&cluster.url(0), "", &together),
        ),
        Subject::new(
            "  on 3 masters",
            cluster,
            1,
            all(&cluster.url(0), "crosslock", &apart),
        ),
    ]
}

fn ours(url: &str) -> impl FnMut() + use<> {
    let locker = Locker::open(url).expect("an engine");
    move || {
        let guard = locker.lock(NAME).expect("a free lock");
        black_box(&guard);
        unlock(guard);
    }
}

fn all(url: &str, namespace: &str, names: &[String]) -> impl FnMut() + use<> {
    let locker = Locker::open(url).expect("an engine");
    let locker = locker.with_namespace(namespace).expect("a namespace");
    let names = names.to_vec();
    move || {
        let guard = locker.lock_all(&names).expect("free locks");
        black_box(&guard);
        unlock(guard);
    }
}

/// On a machine that is busy with other work, no answer may come in time.
fn unlock(guard: LockGuard) {
    guard.unlock().unwrap_or_else(|e| eprintln!("{e}"));
}

fn pings(url: &str) -> impl FnMut() + use<> {
    let mut connection = connect(url);
    move || {
        for _ in 0..2 {
            let pong: String = ask(&mut connection, &["PING"]);
            assert_eq!(pong, "PONG");
        }
    }
}

/// The scripts of this crate without the crate.
fn scripts_alone(url: &str) -> impl FnMut() + use<> {
    let mut connection = connect(url);
    let mut load = |name| ask::<String>(&mut connection, &["SCRIPT", "LOAD", &lua::whole(name)]);
    let (acquire, release) = (load("lock/acquire"), load("lock/release"));
    let others = ["fence", "queue", "waiters", "read_queue", "holders"];
    // On the server of that key.
    let lock = format!("{KEY}alone");
    let keys = others.map(|kind| format!("{lock}:{kind}"));
    // As long as the owners of the crate.
    let owner = "x".repeat(60);
    let call = move |script: &str, argument: i64| {
        let mut call = redis::cmd("EVALSHA");
        call.arg(script).arg(6).arg(&lock);
        call.arg(&keys).arg(&owner).arg(argument).arg("x");
        call
    };
    move || {
        let token: i64 = call(&acquire, 10_000)
            .query(&mut connection)
            .expect("acquire");
        let released: i64 = call(&release, token + 1)
            .query(&mut connection)
            .expect("release");
        assert_eq!(released, 1);
    }
}

fn report(subjects: &mut [Subject]) {
    println!(
        "{:<16} {:<12} {:>7} {:>7} {:>6} {:>6} {:>8} {:>7}",
        "lock + unlock", "", "p50 us", "p99 us", "ratio", "above", "evalsha", "rounds"
    );
    let commands: Vec<_> = subjects.iter_mut().map(Subject::commands).collect();
    for subject in &mut *subjects {
        subject.times.sort_unstable();
    }
    for (number, subject) in subjects.iter().enumerate() {
        let p50 = |number: usize| percentile(&subjects[number].times, 50);
        let above = match subject.what {
            "crosslock" => format!("{:.1}", p50(number) - p50(number - 1)),
            _ => String::new(),
        };
        println!(
            "{:<16} {:<12} {:>7.1} {:>7.1} {:>6.3} {above:>6} {:>8.2} {:>7.2}",
            subject.what,
            subject.place,
            p50(number),
            percentile(&subject.times, 99),
            p50(number) / p50(number - subject.against),
            commands[number][0],
            commands[number][1],
        );
    }
}
