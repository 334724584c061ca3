//! One thread, one free lock: what `min_replicas` adds to a cycle of lock and unlock.
//!
//! ```text
//! cargo bench --bench replicas [-- CYCLES]
//! ```
//!
//! A private master and two replicas are started. Rounds of all subjects are interleaved in one run, so that noise meets
//! them alike; read the ratios, not the times. The master has one CPU and this process the other, and the replicas run
//! where there is room: on a machine of two CPUs they take part of what is measured, and on one of four they don't. Of a
//! cycle the lock waits for replicas, and the unlock doesn't.

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use crosslock::Locker;

use support::{Server, percentile, pin};

const ROUNDS: usize = 50;

fn main() {
    let cycles = support::argument().unwrap_or(5_000_usize);
    let directories = [(); 3].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let master = Server::start(directories[0].path());
    let _replicas = [1, 2].map(|index| Server::replica(directories[index].path(), &master));
    pin(&master);
    await_replicas(&master);
    let mut subjects: Vec<_> = [0, 1, 2].map(|least| Subject::new(&master, least)).into();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for round in 0..=ROUNDS {
        fastrand::shuffle(&mut order);
        for &subject in &order {
            // The first round loads scripts and warms caches.
            subjects[subject].run(cycles / ROUNDS, round > 0);
        }
    }
    report(&mut subjects);
}

/// Until both have the master's data.
fn await_replicas(master: &Server) {
    let mut connection = support::connect(&master.tcp());
    let started = Instant::now();
    loop {
        let info: String = redis::cmd("INFO")
            .arg("replication")
            .query(&mut connection)
            .expect("INFO");
        if info.matches("state=online").count() == 2 {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{info}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

struct Subject {
    least: u32,
    locker: Locker,
    locks: Vec<Duration>,
    unlocks: Vec<Duration>,
}

impl Subject {
    fn new(master: &Server, least: u32) -> Self {
        let url = format!("{}?min_replicas={least}", master.tcp());
        Subject {
            least,
            locker: Locker::open(&url).expect("an engine"),
            locks: Vec::new(),
            unlocks: Vec::new(),
        }
    }

    fn run(&mut self, cycles: usize, record: bool) {
        for _ in 0..cycles {
            let start = Instant::now();
            let guard = self.locker.lock("bench").expect("a free lock");
            let locked = start.elapsed();
            black_box(&guard);
            guard.unlock().expect("our lock");
            if record {
                self.locks.push(locked);
                self.unlocks.push(start.elapsed() - locked);
            }
        }
    }
}

fn report(subjects: &mut [Subject]) {
    println!(
        "{:<16} {:>12} {:>12} {:>14} {:>7}",
        "min_replicas", "lock p50 us", "p99 us", "unlock p50 us", "ratio"
    );
    let mut floor = None;
    for subject in subjects {
        subject.locks.sort_unstable();
        subject.unlocks.sort_unstable();
        let (lock, unlock) = (
            percentile(&subject.locks, 50),
            percentile(&subject.unlocks, 50),
        );
        let p99 = percentile(&subject.locks, 99);
        let ratio = (lock + unlock) / *floor.get_or_insert(lock + unlock);
        println!(
            "{:<16} {lock:>12.1} {p99:>12.1} {unlock:>14.1} {ratio:>7.2}",
            subject.least
        );
    }
}
