//! Threads of one process that want one lock, with nothing to do while they hold it.
//!
//! ```text
//! cargo bench --bench in_process [-- SECONDS]
//! ```
//!
//! A private `redis-server` is started on one CPU, and the threads on another. Each row is measured for SECONDS (2),
//! in rounds that are interleaved in one run; rates and ratios are medians of the rounds, waits are of all of them.
//!
//! How to read it: `ratio` is against what one thread alone does with the same engine in the same run. More threads
//! take more locks a second, because a guard that is dropped gives the lock to the next thread without asking the
//! server. `fair` is how often the least served thread had the lock, against the most served. In the row
//! `+ process`, another process with a single thread wants the same lock all the time: the waits are its own, since
//! a process passes its lock on among its threads for `hand_over` at most.
//!
//! That each thread sees tokens increase is checked all along.

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;

use support::{Server, Worker, monotonic};

const ROUNDS: u32 = 5;

/// How long the threads run before it counts.
const WARM_UP: Duration = Duration::from_millis(100);

fn main() {
    if support::serve() {
        return;
    }
    let seconds = support::argument().unwrap_or(2.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    support::pin(&server);
    let tcp = server.tcp();
    let file = format!("file://{}", directory.path().display());
    let mut subjects = vec![
        Subject::new("redis, tcp", &tcp, 1, 0),
        Subject::new("redis, tcp", &tcp, 2, 0),
        Subject::new("redis, tcp", &tcp, 4, 0),
        Subject::new("redis, tcp", &tcp, 16, 0),
        Subject::new("redis, tcp", &tcp, 16, 0).beside_a_process(),
        Subject::new("file:", &file, 1, 5),
        Subject::new("file:", &file, 16, 5),
        Subject::new("memory:", "memory:", 1, 7),
        Subject::new("memory:", "memory:", 16, 7),
    ];
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..ROUNDS {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            subjects[subject].run(length);
        }
    }
    report(&mut subjects);
}

/// So many threads on a lock of their own.
struct Subject {
    engine: &'static str,
    url: String,
    lock: Locker,
    threads: usize,
    /// The index of the subject that it is compared with.
    alone: usize,
    has_neighbour: bool,
    rounds: Vec<Round>,
    /// Of the other process.
    waits: Vec<Duration>,
}

/// What came out of one round.
struct Round {
    /// Per second.
    acquisitions: f64,
    fairness: f64,
}

impl Subject {
    fn new(engine: &'static str, url: &str, threads: usize, alone: usize) -> Self {
        Subject {
            engine,
            url: url.to_owned(),
            // A locker that has met contention asks in another way.
            lock: Locker::open(url).expect("an engine"),
            threads,
            alone,
            has_neighbour: false,
            rounds: Vec::new(),
            waits: Vec::new(),
        }
    }

    fn beside_a_process(self) -> Self {
        Subject {
            has_neighbour: true,
            ..self
        }
    }

    fn name(&self) -> String {
        format!("{} {} {}", self.engine, self.threads, self.has_neighbour)
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
        self.rounds
            .push(race(&self.lock, &name, self.threads, length));
        let cycles = neighbour.map_or_else(Vec::new, Worker::cycles);
        let counted = cycles.iter().filter(|cycle| begin <= cycle.asked);
        self.waits.extend(counted.map(support::Cycle::waited));
    }

    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        support::median(self.rounds.iter().map(of))
    }
}

const WARMING: u8 = 0;
const COUNTING: u8 = 1;
const OVER: u8 = 2;

fn race(lock: &Locker, name: &str, threads: usize, length: Duration) -> Round {
    let phase = AtomicU8::new(WARMING);
    let together = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let racers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    acquisitions(lock, name, &phase)
                })
            })
            .collect();
        together.wait();
        thread::sleep(WARM_UP);
        let start = Instant::now();
        phase.store(COUNTING, Ordering::Relaxed);
        thread::sleep(length);
        phase.store(OVER, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let served: Vec<usize> = racers
            .into_iter()
            .map(|racer| racer.join().expect("a thread that locks"))
            .collect();
        Round {
            acquisitions: support::ratio(served.iter().sum(), 1) / elapsed.as_secs_f64(),
            fairness: support::fairness(&served),
        }
    })
}

/// How many one thread made while they counted.
fn acquisitions(lock: &Locker, name: &str, phase: &AtomicU8) -> usize {
    let (mut count, mut last) = (0, 0);
    loop {
        let guard = lock.lock(name).expect("the lock");
        let token = guard.fencing_token();
        assert!(token > last, "token {token} after {last}");
        last = token;
        guard.unlock().expect("our lock");
        match phase.load(Ordering::Relaxed) {
            WARMING => {}
            COUNTING => count += 1,
            _ => return count,
        }
    }
}

fn report(subjects: &mut [Subject]) {
    subjects
        .iter_mut()
        .for_each(|subject| subject.waits.sort_unstable());
    println!(
        "{:<12} {:>7} {:>10} {:>9} {:>7} {:>5} {:>8} {:>8} {:>8}",
        "engine", "threads", "", "locks/s", "ratio", "fair", "p50 ms", "p99 ms", "max ms"
    );
    for subject in &*subjects {
        let acquisitions = subject.median(|round| round.acquisitions);
        let alone = subjects[subject.alone].median(|round| round.acquisitions);
        let fairness = subject.median(|round| round.fairness);
        let waits = match &subject.waits[..] {
            [] => String::new(),
            waits @ [.., longest] => format!(
                "{:>8.3} {:>8.3} {:>8.3}",
                support::percentile(waits, 50) / 1e3,
                support::percentile(waits, 99) / 1e3,
                longest.as_secs_f64() * 1e3
            ),
        };
        let beside = if subject.has_neighbour {
            "+ process"
        } else {
            ""
        };
        let line = format!(
            "{:<12} {:>7} {beside:>10} {acquisitions:>9.0} {:>7.2} {fairness:>5.2} {waits}",
            subject.engine,
            subject.threads,
            acquisitions / alone
        );
        println!("{}", line.trim_end());
    }
}
