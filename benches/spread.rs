//! Many names at once: how many locks a second one server gives, and how many three masters of a cluster.
//!
//! ```text
//! cargo bench --bench spread [-- SECONDS]
//! ```
//!
//! Four processes lock and unlock 64 names by two threads each. Each thread has names of its own, which are on all
//! masters, and takes one after the other, so that nobody waits for a lock. Each row is measured for SECONDS (3), in
//! rounds that are interleaved in one run, with new processes each time; all figures are medians of the rounds. The
//! processes share one CPU. The servers share another, or have one each where there are as many: then the first line
//! says so.
//!
//! How to read it: `server us` and `client us` are the CPU time of all servers, and of all processes, per lock and
//! unlock. A server that has a CPU to itself gives at most one million locks a second by its `server us`, and three
//! give three times as many: `most/s` is that, and `ratio` is against one server. `locks/s` shows it only where the
//! servers have the CPUs, and the processes have enough of them not to be what is waited for.

mod support;

use std::time::Duration;

use support::{Column, Counting, P50, Place, Round, Subject, Table, Task, Worker};
use support::{column, contest, cpu_time, per, ratio};

const ROUNDS: u32 = 5;
const NAMES: usize = 64;
const THREADS: usize = 8;
const PROCESSES: usize = 4;

const COLUMNS: [Column; 7] = [
    column("locks/s", "locks/s", P50, 0),
    ratio("locks/s"),
    column("evalsha", "evalsha", P50, 2),
    column("server us", "server us", P50, 1),
    column("client us", "client us", P50, 1),
    column("most/s", "most/s", P50, 0),
    ratio("most/s"),
];

fn main() {
    if support::serve(|_, _| None) {
        return;
    }
    let seconds = support::argument().unwrap_or(3.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let places = [Place::single, Place::cluster].map(|start| start(directory.path()));
    support::spread_places(&places);
    let subjects = places.iter().map(|place| {
        let names = place.names(NAMES);
        Subject::new(place.kind, move || round(place, &names, length)).to("one server")
    });
    let table = Table::new(&["64 names"], &COLUMNS, ROUNDS as usize);
    table.run(subjects.collect());
}

fn round(place: &Place, names: &[String], length: Duration) -> Round {
    let threads = names.chunks(NAMES / THREADS);
    let threads: Vec<String> = threads.map(|names| names.join("\t")).collect();
    let task = Task::holding(Duration::ZERO);
    let spawn = |(process, threads): (usize, &[String])| {
        Worker::spawn(&place.url(process), &threads.join("\n"), &task)
    };
    let processes = threads.chunks(THREADS / PROCESSES).enumerate();
    let workers: Vec<Worker> = processes.map(spawn).collect();
    let pids: Vec<u32> = workers.iter().map(Worker::pid).collect();
    let servers = place.admins();
    let (outcome, (usage, clients)) = contest(workers, length, || {
        let (counting, before) = (Counting::start(servers), cpu_time(&pids));
        move || {
            let clients = cpu_time(&pids).saturating_sub(before);
            (counting.end(), clients)
        }
    });
    let locks = outcome.count();
    let each = |seconds: f64| seconds * 1e6 / per(locks, 1);
    Round::default()
        .with("locks/s", outcome.per_second(locks))
        .with("evalsha", per(usage.evalsha, locks))
        .with("server us", each(usage.cpu))
        .with("client us", each(clients.as_secs_f64()))
        // If each server has a CPU to itself.
        .with(
            "most/s",
            per(place.servers.len(), 1) * 1e6 / each(usage.cpu),
        )
}
