//! Delayed tasks on one Redis server: how many a second, how late, and how soon a killed worker's task runs again.
//!
//! ```text
//! cargo bench --features delay --bench delay [-- TASKS]
//! ```
//!
//! A private `redis-server` is started for all rows, on a processor of its own; workers are processes. TASKS (20,000)
//! is how many tasks a row has that counts them. Rounds of the rows of a table take turns.
//!
//! How to read it: `tasks/s` counts tasks that do nothing. `late us` is from when a task is due to when the handler has
//! it, by the clock of this machine, which is that of the server, too. `again ms` is from SIGKILL to when another
//! worker has the task; the ttl is 1 s.

mod support;
#[path = "delay/worker.rs"]
mod worker;

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crosslock::{DelayQueue, Locker, Task};
use support::{
    Column, MAX, P50, P99, Round, Server, Subject, Table, ask, column, connect, per, pin,
};
use worker::{Worker, serve};

const NOW: Duration = Duration::ZERO;
/// Of what vanishes.
const TTL: Duration = Duration::from_secs(1);
const BATCH: usize = 100;

type Queue = DelayQueue<u64>;

const RATES: [Column; 1] = [column("tasks/s", "tasks/s", P50, 0)];
const LATENESS: [Column; 3] = [
    column("p50 us", "late us", P50, 0),
    column("p99 us", "late us", P99, 0),
    column("max us", "late us", MAX, 0),
];
const AGAIN: [Column; 2] = [
    column("p50 ms", "again ms", P50, 0),
    column("max ms", "again ms", MAX, 0),
];
const SIZES: [Column; 3] = [
    column("insert/s", "insert/s", P50, 0),
    column("take/s", "take/s", P50, 0),
    column("bytes a task", "bytes", P50, 0),
];
const COMMANDS: [Column; 1] = [column("commands/s", "commands/s", P50, 1)];

fn main() {
    if serve() {
        return;
    }
    let tasks: usize = support::argument().unwrap_or(20_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    pin(&server);
    let url = server.tcp();
    rates(&url, tasks);
    lateness(&url);
    rescue(&url);
    sizes(&url);
    idle(&url);
}

fn queue(url: &str, name: &str) -> Queue {
    let locker = Locker::builder(url).ttl(TTL).build().expect("a server");
    locker.delay_queue(name).expect("a queue")
}

fn rate(metric: &'static str, count: usize, began: Instant) -> Round {
    Round::default().with(metric, per(count, 1) / began.elapsed().as_secs_f64())
}

fn rates(url: &str, tasks: usize) {
    let inserts = |queue: Queue| {
        move || {
            let (began, count) = (Instant::now(), tasks / 4);
            for value in 0..count {
                let delay = Duration::from_secs(600);
                queue.insert(&(value as u64), delay).expect("a task");
            }
            rate("tasks/s", count, began)
        }
    };
    let batches = |queue: Queue| {
        move || {
            let began = Instant::now();
            fill(&queue, tasks, Duration::from_secs(600));
            rate("tasks/s", tasks, began)
        }
    };
    let takes = |queue: Queue| {
        move || {
            fill(&queue, tasks / 4, NOW);
            let began = Instant::now();
            let done = drain(&queue);
            rate("tasks/s", done, began)
        }
    };
    let table = Table::new(&["tasks that do nothing"], &RATES, 5).after(1);
    let many = "take and done, 4 processes of 4 threads";
    let worked = "`work`, 4 processes of 4 threads";
    table.run(vec![
        Subject::new("insert, one thread", inserts(queue(url, "single"))),
        Subject::new("insert, batches of 100", batches(queue(url, "batches"))),
        Subject::new("take and done, one thread", takes(queue(url, "one"))),
        Subject::new(many, takes_of_many(url, tasks)),
        Subject::new(worked, works_of_many(url, tasks)),
    ]);
}

/// From when the workers begin to when nothing is left to do.
fn works_of_many(url: &str, tasks: usize) -> impl FnMut() -> Round {
    let queue = queue(url, "worked");
    let spawn = |_| Worker::spawn(url, "worked", "work", 4);
    let mut workers: Vec<_> = (0..4).map(spawn).collect();
    move || {
        fill(&queue, tasks, NOW);
        let began = Instant::now();
        workers.iter_mut().for_each(Worker::begin);
        while queue.counts().expect("a server") != crosslock::TaskCounts::default() {
            thread::sleep(Duration::from_millis(3));
        }
        let round = rate("tasks/s", tasks, began);
        let done: f64 = workers.iter_mut().flat_map(Worker::end).sum();
        assert_eq!(done, per(tasks, 1));
        round
    }
}

fn takes_of_many(url: &str, tasks: usize) -> impl FnMut() -> Round {
    let queue = queue(url, "many");
    let spawn = |_| Worker::spawn(url, "many", "drain", 4);
    let mut workers: Vec<_> = (0..4).map(spawn).collect();
    move || {
        fill(&queue, tasks, NOW);
        let began = Instant::now();
        workers.iter_mut().for_each(Worker::begin);
        let counts = workers.iter_mut().map(Worker::line);
        let counts = counts.map(|count| count.parse::<usize>().expect("a number"));
        let done = counts.sum();
        assert_eq!(done, tasks);
        rate("tasks/s", done, began)
    }
}

fn fill(queue: &Queue, tasks: usize, delay: Duration) {
    for begin in (0..tasks).step_by(BATCH) {
        let batch: Vec<_> = (begin..tasks.min(begin + BATCH))
            .map(|value| (value as u64, delay))
            .collect();
        queue.insert_all(&batch).expect("tasks");
    }
}

/// Takes and ends all tasks that are due; gives how many.
fn drain(queue: &Queue) -> usize {
    let mut done = 0;
    while let Some(task) = queue.try_take().expect("a server") {
        Task::done(task).expect("our task");
        done += 1;
    }
    done
}

/// A thousand tasks a second are due, and as many workers wait as are busy at a time.
fn lateness(url: &str) {
    const TASKS: u64 = 2_000;
    let row = |threads: usize, name: &str| {
        let (queue, url, name) = (queue(url, name), url.to_owned(), name.to_owned());
        move || {
            let mut workers: Vec<_> = (0..4)
                .map(|_| Worker::spawn(&url, &name, "listen", threads))
                .collect();
            workers.iter_mut().for_each(Worker::begin);
            let start = SystemTime::now() + Duration::from_millis(1_000);
            for task in 0..TASKS {
                queue
                    .insert_at(&task, start + Duration::from_millis(task))
                    .expect("a task");
            }
            let mut round = Round::default();
            while queue.counts().expect("a server") != crosslock::TaskCounts::default() {
                thread::sleep(Duration::from_millis(50));
            }
            for worker in &mut workers {
                for late in worker.end() {
                    round.add("late us", late);
                }
            }
            round
        }
    };
    Table::new(&["1,000 tasks due a second"], &LATENESS, 3).run(vec![
        Subject::new("4 processes of 1 worker", row(1, "late1")),
        Subject::new("4 processes of 4 workers", row(4, "late4")),
    ]);
}

/// A worker is killed that has a task, while another waits.
fn rescue(url: &str) {
    let queue = queue(url, "rescue");
    let again = || {
        let mut victim = Worker::spawn(url, "rescue", "hold", 1);
        queue.insert(&1, NOW).expect("a task");
        victim.begin();
        victim.line();
        let waiting = queue.clone();
        let waiter = thread::spawn(move || {
            let task = waiting.take().expect("a server");
            let taken = Instant::now();
            Task::done(task).expect("our task");
            taken
        });
        thread::sleep(Duration::from_millis(500));
        let killed = Instant::now();
        victim.child.kill().expect("our process");
        let taken = waiter.join().expect("a task");
        let mut round = Round::default();
        round.millis("again ms", taken - killed);
        round
    };
    Table::new(&["a killed worker's task, ttl 1 s"], &AGAIN, 10)
        .run(vec![Subject::new("runs again", again)]);
}

/// The more tasks there are.
fn sizes(url: &str) {
    let row = |size: usize| {
        let (queue, mut admin) = (queue(url, &format!("size{size}")), connect(url));
        move || {
            const AT_END: usize = 2_000;
            let memory = |admin: &mut redis::Connection| -> f64 {
                let info: String = ask(admin, &["INFO", "memory"]);
                let used = info
                    .lines()
                    .find_map(|line| line.strip_prefix("used_memory:"));
                used.and_then(|used| used.trim().parse().ok())
                    .expect("a size")
            };
            let before = memory(&mut admin);
            fill(&queue, size, Duration::from_secs(3_600));
            let bytes = (memory(&mut admin) - before) / per(size, 1);
            let began = Instant::now();
            for value in 0..AT_END {
                queue.insert(&(value as u64), NOW).expect("a task");
            }
            let mut round = rate("insert/s", AT_END, began).with("bytes", bytes);
            let began = Instant::now();
            let done = drain(&queue);
            assert_eq!(done, AT_END);
            round.append(rate("take/s", AT_END, began));
            ask::<()>(&mut admin, &["FLUSHALL"]);
            round
        }
    };
    Table::new(&["delayed tasks beside"], &SIZES, 3).run(vec![
        Subject::new("1,000", row(1_000)),
        Subject::new("1,000,000", row(1_000_000)),
    ]);
}

/// Waiting workers ask from time to time, and that is all.
fn idle(url: &str) {
    let mut admin = connect(url);
    let workers: Vec<_> = (0..64)
        .map(|_| {
            let mut worker = Worker::spawn(url, "idle", "listen", 1);
            worker.begin();
            worker
        })
        .collect();
    thread::sleep(Duration::from_secs(2));
    let mut commands = || -> f64 {
        let info: String = ask(&mut admin, &["INFO", "stats"]);
        let count = info
            .lines()
            .find_map(|line| line.strip_prefix("total_commands_processed:"));
        count
            .and_then(|count| count.trim().parse().ok())
            .expect("a number")
    };
    let idle = || {
        let (before, began) = (commands(), Instant::now());
        thread::sleep(Duration::from_secs(3));
        Round::default().with(
            "commands/s",
            (commands() - before) / began.elapsed().as_secs_f64(),
        )
    };
    Table::new(&["64 idle waiting processes, ttl 1 s"], &COMMANDS, 2)
        .run(vec![Subject::new("commands of scripts too", idle)]);
    drop(workers);
}
