//! One thread, one free lock: what `min_replicas` adds to a cycle of lock and unlock.
//!
//! ```text
//! cargo bench --bench replicas [-- CYCLES]
//! ```
//!
//! A private master and two replicas are started. Rounds of all subjects are interleaved in one run, so that noise
//! meets them alike; read the ratios, not the times. The master has one CPU and this process the other, and the
//! replicas run where there is room: on a machine of two CPUs they take part of what is measured, and on one of four
//! they don't. Of a cycle the lock waits for replicas, and the unlock doesn't.

mod support;

use std::thread;
use std::time::{Duration, Instant};

use support::{Column, P50, P99, Server, Table, ask, column, ours, ratio, timed};

const ROUNDS: usize = 50;

const COLUMNS: [Column; 4] = [
    column("lock p50 us", "lock us", P50, 1),
    column("p99 us", "lock us", P99, 1),
    column("unlock p50 us", "unlock us", P50, 1),
    ratio("cycle us"),
];

fn main() {
    let count = support::argument().unwrap_or(5_000_usize) / ROUNDS;
    let directories = [(); 3].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let master = Server::start(directories[0].path());
    let _replicas = [1, 2].map(|index| Server::replica(directories[index].path(), &master));
    support::pin(&master);
    await_replicas(&master);
    let subjects = ["0", "1", "2"].map(|least| {
        let url = format!("{}?min_replicas={least}", master.tcp());
        timed(least, count, ours(&url, "bench")).to("0")
    });
    let table = Table::new(&["min_replicas"], &COLUMNS, ROUNDS).after(1);
    table.run(subjects.into());
}

/// Until both have the master's data.
fn await_replicas(master: &Server) {
    let mut connection = support::connect(&master.tcp());
    let started = Instant::now();
    loop {
        let info: String = ask(&mut connection, &["INFO", "replication"]);
        if info.matches("state=online").count() == 2 {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{info}");
        thread::sleep(Duration::from_millis(50));
    }
}
