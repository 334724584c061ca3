//! Many names at once: how many locks a second one server gives, and how many three masters of a cluster.
//!
//! ```text
//! cargo bench --bench spread [-- SECONDS]
//! ```
//!
//! Four processes lock and unlock 64 names by two threads each. Each thread has names of its own, which are on all masters, and takes
//! one after the other, so that nobody waits for a lock. Each row is measured for SECONDS (3), in rounds that are
//! interleaved in one run, with new processes each time; all figures are medians of the rounds. The processes share one CPU. The servers share another, or have one each where there are as many: then
//! the first line says so.
//!
//! How to read it: `server us` and `client us` are the CPU time of all servers, and of all processes, per lock and unlock. A
//! server that has a CPU to itself gives at most one million locks a second by its `server us`, and three give three times
//! as many: `most/s` is that, and `ratio` is against one server. `locks/s` shows it only where the servers have the CPUs, and
//! the processes have enough of them not to be what is waited for.

mod support;

use std::time::Duration;

use support::{Counting, Place, Worker, monotonic};

const ROUNDS: u32 = 5;
const NAMES: usize = 64;
const THREADS: usize = 8;
const PROCESSES: usize = 4;

const WARM_UP: Duration = Duration::from_millis(250);

/// From the order to begin to the beginning.
const START: Duration = Duration::from_millis(20);

/// How long the processes run on, so that none ends before it doesn't count any more.
const MARGIN: Duration = Duration::from_millis(130);

fn main() {
    if support::serve() {
        return;
    }
    let seconds = support::argument().unwrap_or(3.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = [Place::single, Place::cluster];
    let places = start.map(|start| start(directory.path()));
    support::spread_places(&places);
    let mut subjects: Vec<Subject> = places.iter().map(Subject::new).collect();
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

/// The names of one place.
struct Subject<'a> {
    place: &'a Place,
    names: Vec<String>,
    rounds: Vec<Round>,
}

/// What came out of one round.
struct Round {
    /// Per second.
    acquisitions: f64,
    /// Per acquisition.
    evalsha: f64,
    /// Microseconds per acquisition.
    servers: f64,
    clients: f64,
}

impl<'a> Subject<'a> {
    fn new(place: &'a Place) -> Self {
        Subject {
            place,
            names: place.names(NAMES),
            rounds: Vec::new(),
        }
    }

    fn run(&mut self, length: Duration) {
        let threads = self.names.chunks(NAMES / THREADS);
        let threads: Vec<String> = threads.map(|names| names.join("\t")).collect();
        let processes = threads.chunks(THREADS / PROCESSES).enumerate();
        let mut workers: Vec<Worker> = processes
            .map(|(process, threads)| {
                let url = self.place.url(process);
                Worker::spawn(&url, &threads.join("\n"), Duration::ZERO)
            })
            .collect();
        workers.iter_mut().for_each(Worker::await_ready);
        let servers = self.place.admins();
        let begin = monotonic() + START;
        let latest = begin + WARM_UP + MARGIN + length;
        for worker in &mut workers {
            worker.run(begin, latest + MARGIN);
        }
        support::sleep_until(begin + WARM_UP);
        let counting = Counting::start(servers);
        let clients = clients(&workers);
        let begin = monotonic();
        support::sleep_until(latest.min(begin + length));
        let end = monotonic();
        let clients = clients_since(&workers, clients);
        let usage = counting.end();
        let cycles = workers.into_iter().flat_map(Worker::cycles);
        let counted = cycles.filter(|cycle| begin <= cycle.held[0] && cycle.held[0] < end);
        let acquisitions = counted.count();
        let each = |seconds: f64| seconds * 1e6 / support::ratio(acquisitions, 1);
        self.rounds.push(Round {
            acquisitions: support::ratio(acquisitions, 1) / (end - begin).as_secs_f64(),
            evalsha: support::ratio(usage.evalsha, acquisitions),
            servers: each(usage.cpu),
            clients: each(clients.as_secs_f64()),
        });
    }

    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        support::median(self.rounds.iter().map(of))
    }

    /// What its servers can give, if each has a CPU to itself.
    fn most(&self) -> f64 {
        let servers = support::ratio(self.place.servers.len(), 1);
        servers * 1e6 / self.median(|round| round.servers)
    }
}

fn clients(workers: &[Worker]) -> Duration {
    workers.iter().map(Worker::cpu_time).sum()
}

fn clients_since(workers: &[Worker], before: Duration) -> Duration {
    clients(workers).saturating_sub(before)
}

fn report(subjects: &[Subject]) {
    println!(
        "{:<10} {:>8} {:>6} {:>8} {:>10} {:>10} {:>8} {:>6}",
        "64 names", "locks/s", "ratio", "evalsha", "server us", "client us", "most/s", "ratio"
    );
    for subject in subjects {
        let single = &subjects[0];
        let acquisitions = |subject: &Subject| subject.median(|round| round.acquisitions);
        println!(
            "{:<10} {:>8.0} {:>6.2} {:>8.2} {:>10.1} {:>10.1} {:>8.0} {:>6.2}",
            subject.place.kind,
            acquisitions(subject),
            acquisitions(subject) / acquisitions(single),
            subject.median(|round| round.evalsha),
            subject.median(|round| round.servers),
            subject.median(|round| round.clients),
            subject.most(),
            subject.most() / single.most(),
        );
    }
}
