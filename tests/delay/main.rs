//! Delay queues in a directory under fire: processes that work on tasks are killed and stopped. No task is lost, none
//! is done twice, and none is one worker's while it is another's. And what queues on a server cost.
//!
//! Each test has `TASKS` tasks in about a second; the variable of that name has others:
//!
//! ```text
//! TASKS=100000 cargo test -p crosslock-tests --all-features --test delay -- --nocapture
//! ```

mod judge;
mod server;

use std::env;
use std::time::{Duration, Instant};

use crosslock::{DelayQueue, Locker, TaskCounts};
use judge::violations;
use support::Child;
use support::puppet::{TTL, URL};

const TASKS: &str = "TASKS";
const FEW: u32 = 400;
const WORKERS: usize = 4;
const LEASE: Duration = Duration::from_millis(1_500);
/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn tasks() -> u32 {
    let tasks = env::var(TASKS).map(|tasks| tasks.parse().expect("a number"));
    tasks.unwrap_or(FEW)
}

/// Processes that work, and what those have said that were killed.
struct Workers {
    url: String,
    all: Vec<Child>,
    said: Vec<Vec<String>>,
}

impl Workers {
    fn start(url: &str) -> Self {
        let mut workers = Workers {
            url: url.to_owned(),
            all: Vec::new(),
            said: Vec::new(),
        };
        workers.all = (0..WORKERS).map(|_| workers.spawn()).collect();
        workers
    }

    fn spawn(&self) -> Child {
        let ttl = LEASE.as_millis().to_string();
        Child::spawn("works on tasks", &[(URL, &self.url), (TTL, &ttl)])
    }

    fn kill(&mut self, index: usize) {
        let spawned = self.spawn();
        let mut killed = std::mem::replace(&mut self.all[index], spawned);
        killed.kill();
        self.said.push(killed.rest(PATIENCE));
    }

    /// It goes on when its leases are over, where they end by themselves.
    fn stop(&self, index: usize) {
        self.all[index].stop();
        std::thread::sleep(LEASE + LEASE / 4);
        self.all[index].cont();
    }

    fn trouble(&mut self) {
        let index = fastrand::usize(..WORKERS);
        match fastrand::u8(..6) {
            0 => self.stop(index),
            _ => self.kill(index),
        }
        std::thread::sleep(Duration::from_millis(fastrand::u64(20..200)));
    }

    fn end(mut self) -> Vec<Vec<String>> {
        for mut worker in self.all {
            worker.kill();
            self.said.push(worker.rest(PATIENCE));
        }
        self.said
    }
}

/// Inserts all tasks, which are due within a second and more, while workers die; then judges.
fn storm(url: &str) {
    let locker = Locker::builder(url)
        .outage_timeout(PATIENCE)
        .build()
        .expect("open");
    let queue = locker.delay_queue::<u32>("tasks").expect("a queue");
    let (count, began) = (tasks(), Instant::now());
    let mut workers = Workers::start(url);
    let inserting = std::thread::spawn({
        let queue = queue.clone();
        move || (0..count).for_each(|value| insert(&queue, value))
    });
    workers.kill(0);
    while !(inserting.is_finished() && is_empty(&queue)) {
        assert!(
            began.elapsed() < PATIENCE + Duration::from_millis(20) * count,
            "{:?}",
            queue.counts()
        );
        workers.trouble();
    }
    inserting.join().expect("no panic");
    let violations = violations(&workers.end(), count);
    println!("{count} tasks in {:?}", began.elapsed());
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Its id has it inserted once, however often its answer is lost.
fn insert(queue: &DelayQueue<u32>, value: u32) {
    let delay = Duration::from_millis(fastrand::u64(..1_000));
    let entry = || {
        let entry = queue.entry(value.to_string()).after(delay).tries(0);
        entry.backoff(Duration::ZERO, Duration::ZERO)
    };
    let began = Instant::now();
    while let Err(e) = entry().insert(&value) {
        assert!(began.elapsed() < PATIENCE, "{e}");
    }
}

fn is_empty(queue: &DelayQueue<u32>) -> bool {
    queue
        .counts()
        .is_ok_and(|counts| counts == TaskCounts::default())
}

#[test]
fn no_task_of_a_directory_is_lost_or_done_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    storm(&format!("file://{}", dir.path().display()));
}
