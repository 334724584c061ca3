//! Threads of one process that want one lock, beside the mutexes of `std` and `parking_lot`.
//!
//! ```text
//! cargo bench --bench in_process [-- SECONDS] [ENGINE] [unpinned]
//! ```
//!
//! A private `redis-server` is started on one CPU, and the threads on another; with `unpinned` they run where the system
//! puts them. Each row is measured for SECONDS (2), in rounds that are interleaved in one run; rates and ratios are medians
//! of the rounds, waits are of all of them. ENGINE leaves out the rows of others.
//!
//! How to read it: the threads do nothing while they hold the lock, or work for about as many microseconds inside of it, and
//! as many outside. `ratio` is against what one thread alone does with the same engine and work in the same run. More threads
//! take more locks a second, because a guard that is dropped leaves its lease to the threads of its process, without
//! asking the engine. `fair` is how often the least served thread had the lock, against the most served. Waits are those of
//! the calls that lock. In the row `+ process`, another process with a single thread wants the same lock all the time: there the
//! waits are its own, since a process passes its lock on among its threads for `hand_over` at most.
//!
//! That each thread sees tokens increase is checked all along.

#[path = "in_process/race.rs"]
mod race;
mod support;

use std::time::Duration;

use crosslock::Locker;

use race::{Lock, Round, WARM_UP, Waits, Work};
use support::{Server, Worker, monotonic};

const ROUNDS: u32 = 5;

fn main() {
    if support::serve() {
        return;
    }
    let seconds = support::argument().unwrap_or(2.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    let has = |word: &str| std::env::args().any(|arg| arg == word);
    if !has("unpinned") {
        support::pin(&server);
    }
    let mut subjects = subjects(
        &server.tcp(),
        &format!("file://{}", directory.path().display()),
    );
    let engines: Vec<_> = subjects.iter().map(|subject| subject.engine).collect();
    if engines.iter().any(|engine| has(engine)) {
        subjects.retain(|subject| has(subject.engine));
    }
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..ROUNDS {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            subjects[subject].run(length);
        }
    }
    report(&subjects);
}

fn subjects(redis: &str, file: &str) -> Vec<Subject> {
    let mut all = Vec::new();
    let engines = [
        ("std", ""),
        ("parking_lot", ""),
        ("memory:", "memory:"),
        ("file:", file),
        ("redis", redis),
    ];
    for work in [Work::none(), Work::of(Duration::from_micros(5))] {
        for (engine, url) in engines {
            let threads = [1, 2, 4, 16].into_iter();
            all.extend(threads.map(|threads| Subject::new(engine, url, threads, work)));
        }
    }
    let beside = Subject::new("redis", redis, 16, Work::none());
    all.push(beside.beside_a_process());
    all
}

/// So many threads on a lock of their own.
struct Subject {
    engine: &'static str,
    url: String,
    lock: Lock,
    threads: usize,
    work: Work,
    has_neighbour: bool,
    rounds: Vec<Round>,
    waits: Waits,
}

impl Subject {
    fn new(engine: &'static str, url: &str, threads: usize, work: Work) -> Self {
        let lock = match engine {
            "std" => Lock::Std(std::sync::Mutex::new(())),
            "parking_lot" => Lock::ParkingLot(parking_lot::Mutex::new(())),
            // A locker that has met contention asks in another way.
            _ => Lock::Locker(Locker::open(url).expect("an engine")),
        };
        Subject {
            engine,
            url: url.to_owned(),
            lock,
            threads,
            work,
            has_neighbour: false,
            rounds: Vec::new(),
            waits: Waits::default(),
        }
    }

    fn beside_a_process(self) -> Self {
        Subject {
            has_neighbour: true,
            ..self
        }
    }

    fn name(&self) -> String {
        let micros = self.work.length().as_micros();
        format!("{} {} {}", self.threads, micros, self.has_neighbour)
    }

    fn run(&mut self, length: Duration) {
        let name = self.name();
        let mut neighbour = self.has_neighbour.then(|| {
            let mut neighbour = Worker::spawn(&self.url, &name, Duration::ZERO);
            neighbour.await_ready();
            neighbour
        });
        let begin = monotonic() + WARM_UP;
        let end = begin + length;
        if let Some(neighbour) = &mut neighbour {
            neighbour.run(monotonic(), end);
        }
        let (round, waits) = race::race(&self.lock, &name, self.threads, self.work, length);
        self.rounds.push(round);
        let Some(neighbour) = neighbour else {
            return self.waits.add(&waits);
        };
        let cycles = neighbour.cycles();
        let counted = cycles.iter().filter(|cycle| begin <= cycle.asked);
        counted.for_each(|cycle| self.waits.count(cycle.waited()));
    }

    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        support::median(self.rounds.iter().map(of))
    }

    /// Whether it is what this one is compared with.
    fn is_alone_for(&self, other: &Subject) -> bool {
        self.engine == other.engine
            && self.threads == 1
            && self.work.length() == other.work.length()
    }
}

fn report(subjects: &[Subject]) {
    println!(
        "{:<12} {:>7} {:>10} {:>5} {:>9} {:>7} {:>5} {:>8} {:>8} {:>8} {:>8}",
        "engine",
        "threads",
        "",
        "work",
        "locks/s",
        "ratio",
        "fair",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "max ms"
    );
    for subject in subjects {
        let acquisitions = subject.median(|round| round.acquisitions);
        let alone = subjects.iter().find(|other| other.is_alone_for(subject));
        let alone = alone.map_or(acquisitions, |one| one.median(|round| round.acquisitions));
        let fairness = subject.median(|round| round.fairness);
        let beside = if subject.has_neighbour {
            "+ process"
        } else {
            ""
        };
        let waits =
            [0.5, 0.99, 0.999, 1.0].map(|part| subject.waits.quantile(part).as_secs_f64() * 1e3);
        println!(
            "{:<12} {:>7} {beside:>10} {:>5} {acquisitions:>9.0} {:>7.2} {fairness:>5.2} {:>8.3} {:>8.3} {:>8.3} {:>8.3}",
            subject.engine,
            subject.threads,
            subject.work.length().as_micros(),
            acquisitions / alone,
            waits[0],
            waits[1],
            waits[2],
            waits[3]
        );
    }
}
