//! Threads of one process that want one lock, beside the mutexes of `std` and `parking_lot`.
//!
//! ```text
//! cargo bench --bench in_process [-- SECONDS] [ENGINE] [unpinned]
//! ```
//!
//! A private `redis-server` is started on one CPU, and the threads on another; with `unpinned` they run where the
//! system puts them. Each row is measured for SECONDS (2), in rounds that are interleaved in one run; rates and ratios
//! are medians of the rounds, waits are of all of them. ENGINE leaves out the rows of others.
//!
//! How to read it: the threads do nothing while they hold the lock, or work for about as many microseconds inside of
//! it, and as many outside. `ratio` is against what one thread alone does with the same engine and work in the same
//! run. More threads take more locks a second, because a guard that is dropped leaves its lease to the threads of its
//! process, without asking the engine. `fair` is how often the least served thread had the lock, against the most
//! served. Waits are those of the calls that lock. In the row `+ process`, another process with a single thread wants
//! the same lock all the time: there the waits are its own, since a process passes its lock on among its threads for
//! `hand_over` at most.
//!
//! That each thread sees tokens increase is checked all along.

#[path = "in_process/race.rs"]
mod race;
mod support;

use std::time::Duration;

use crosslock::Locker;
use race::{Mutex, WARM_UP, Work};
use support::{Column, MAX, P50, P99, Server, Subject, Table, Task, Worker};
use support::{column, monotonic, ratio};

const ROUNDS: u32 = 5;

const COLUMNS: [Column; 7] = [
    column("locks/s", "locks/s", P50, 0),
    ratio("locks/s"),
    column("fair", "fair", P50, 2),
    column("p50 ms", "wait ms", P50, 3),
    column("p99 ms", "wait ms", P99, 3),
    column("p99.9 ms", "wait ms", 999, 3),
    column("max ms", "longest ms", MAX, 3),
];

fn main() {
    if support::serve(|_, _| None) {
        return;
    }
    let seconds = support::argument().unwrap_or(2.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    if !support::has("unpinned") {
        support::pin(&server);
    }
    let file = format!("file://{}", directory.path().display());
    let table = Table::new(
        &["engine", "threads", "", "work"],
        &COLUMNS,
        ROUNDS as usize,
    );
    table.run(subjects(&server.tcp(), &file, length));
}

fn subjects(redis: &str, file: &str, length: Duration) -> Vec<Subject<'static>> {
    let engines = [
        ("std", ""),
        ("parking_lot", ""),
        ("memory:", "memory:"),
        ("file:", file),
        ("redis", redis),
    ];
    let is_any_named = engines.iter().any(|(engine, _)| support::has(engine));
    let is_wanted = |engine| !is_any_named || support::has(engine);
    let mut all = Vec::new();
    for work in [Work::none(), Work::of(Duration::from_micros(5))] {
        let wanted = engines.iter().filter(|(engine, _)| is_wanted(engine));
        for (engine, url) in wanted {
            let threads = [1, 2, 4, 16].into_iter();
            all.extend(threads.map(|threads| subject(engine, url, threads, work, length)));
        }
    }
    if is_wanted("redis") {
        all.push(beside_a_process(redis, length));
    }
    all
}

/// So many threads on a lock of their own.
fn subject(
    engine: &str,
    url: &str,
    threads: usize,
    work: Work,
    length: Duration,
) -> Subject<'static> {
    let micros = work.length().as_micros();
    let mutex = match engine {
        "std" => Mutex::Std(std::sync::Mutex::new(())),
        "parking_lot" => Mutex::ParkingLot(parking_lot::Mutex::new(())),
        // A locker that has met contention asks in another way.
        _ => Mutex::Locker(open(url), format!("{threads} {micros}")),
    };
    let run = move || race::race(&mutex, threads, work, length);
    let name = |threads| format!("{engine}|{threads}||{micros}");
    Subject::new(&name(threads), run).to(&name(1))
}

/// Threads while another process with a single one wants the same lock: its waits.
fn beside_a_process(url: &str, length: Duration) -> Subject<'static> {
    let mutex = Mutex::Locker(open(url), "beside".to_owned());
    let url = url.to_owned();
    let run = move || {
        let mut neighbour = Worker::spawn(&url, "beside", &Task::holding(Duration::ZERO));
        neighbour.await_ready();
        let begin = monotonic() + WARM_UP;
        neighbour.run([monotonic(), begin + length]);
        let mut round = race::race(&mutex, 16, Work::none(), length).without("wait ms");
        round = round.without("longest ms");
        let cycles = neighbour.cycles();
        for cycle in cycles.iter().filter(|cycle| begin <= cycle.asked) {
            round.millis("wait ms", cycle.waited());
            round.millis("longest ms", cycle.waited());
        }
        round
    };
    Subject::new("redis|16|+ process|0", run).to("redis|1||0")
}

fn open(url: &str) -> Locker {
    Locker::open(url).expect("an engine")
}
