//! The same locks on every engine, and on etcd and ZooKeeper against what these need at least.
//!
//! ```text
//! cargo bench -p crosslock-tests --features etcd,zookeeper --bench consensus [-- CYCLES]
//! ```
//!
//! Three members of etcd, three of ZooKeeper and a Redis server are started on this machine, all with their usual
//! durability: each write of etcd and ZooKeeper waits for the disk, Redis' doesn't. `CROSSLOCK_TEST_ETCD` and
//! `CROSSLOCK_TEST_ZOOKEEPER` name the programs; `tests/run.sh` finds or downloads them.
//!
//! **Alone**: one thread locks and unlocks a free lock; one cycle of each subject is run after the other, in an order
//! that changes each time, so that noise meets them alike. `lock` and `unlock` are against the requests that they need
//! at least, on a connection of this bench to the same member: on etcd a transaction of the same size each, on
//! ZooKeeper `create` and then `getChildren`, and a `delete`.
//!
//! **Contended**: four processes lock, hold for 1 ms and unlock in a loop. `gap` is from one holder's last moment to
//! the next one's first, `fair` how often the least served process had the lock against the most served. `requests` are
//! those that the servers were sent for each acquisition; renewals, pings and watches count. `etcd's recipe` is what
//! etcd's own `concurrency` package does, by four processes of this bench: put the own key, look for the one ahead of
//! it, watch that, look again, check the own key, delete it.
//!
//! **Peers**, only where `benches/consensus/peers.sh` starts this: etcd's Go package and Curator lock and unlock a free
//! lock, in turn with crosslock, and for each what it costs the servers.
//!
//! Read the ratios, not the times.

mod etcd;
mod peers;
mod places;
#[path = "../support/mod.rs"]
mod shared;
mod zookeeper;

use std::time::Duration;

use places::Places;
use shared::{Column, Opened, P50, P99, Subject, Table, Task, Worker};
use shared::{column, contest, ours, per, ratio, timed};

const ALONE: [Column; 6] = [
    column("lock p50", "lock us", P50, 1),
    column("p99 us", "lock us", P99, 1),
    ratio("lock us"),
    column("unlock p50", "unlock us", P50, 1),
    column("p99 us", "unlock us", P99, 1),
    ratio("unlock us"),
];

const CONTENDED: [Column; 6] = [
    column("locks/s", "locks/s", P50, 0),
    column("gap us", "gap us", P50, 0),
    column("p50 ms", "wait ms", P50, 2),
    column("p99 ms", "wait ms", P99, 2),
    column("requests", "requests", P50, 2),
    column("fair", "fair", P50, 2),
];

/// The lock of other processes than crosslock's.
const RECIPE: &str = "etcd's recipe";

fn main() {
    if shared::serve(open) {
        return;
    }
    let cycles = shared::argument().unwrap_or(400_usize);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let places = Places::start(directory.path());
    if peers::are_named() {
        return peers::run(&places, cycles);
    }
    alone(&places, cycles);
    contended(&places);
}

/// What a worker locks by, if not by crosslock.
fn open(task: &Task, url: &str) -> Option<Opened> {
    let member = url.parse().ok().filter(|_| task.kind == RECIPE)?;
    Some(Box::new(move |_| Box::new(etcd::Recipe::to(member))))
}

/// One thread, a free lock.
fn alone(places: &Places, cycles: usize) {
    let (etcd, zookeeper) = ("etcd: two transactions", "zookeeper: three requests");
    let bare_etcd = etcd::Bare::to(places.etcd_members()[0]);
    let bare_zookeeper = zookeeper::Bare::to(places.zookeeper_members()[0]);
    let crosslock = |name, url: &str| timed(name, 1, ours(url, "bench"));
    let subjects = vec![
        crosslock("memory", "memory:"),
        crosslock("file", &places.file),
        crosslock("redis", &places.redis_url()),
        timed(etcd, 1, bare_etcd),
        crosslock("etcd", &places.etcd_url()).to(etcd),
        timed(zookeeper, 1, bare_zookeeper),
        crosslock("zookeeper", &places.zookeeper_url()).to(zookeeper),
    ];
    let table = Table::new(&["alone"], &ALONE, cycles).after(20);
    table.run(subjects);
}

/// Four processes that want one lock.
fn contended(places: &Places) {
    let none = || 0;
    let etcd = || places.etcd_requests();
    let zookeeper = || places.zookeeper_requests();
    let member = places.etcd_members()[0].to_string();
    let subjects = vec![
        contest_of("file", "Lock", places.file.clone(), none),
        contest_of("redis", "Lock", places.redis_url(), none),
        contest_of("etcd", "Lock", places.etcd_url(), etcd),
        contest_of("zookeeper", "Lock", places.zookeeper_url(), zookeeper),
        contest_of(RECIPE, RECIPE, member, etcd),
    ];
    let table = Table::new(&["4 processes, 1 ms"], &CONTENDED, 3);
    table.run(subjects);
}

/// `requests`: how many the servers have been sent; none, if they don't count.
fn contest_of<'a>(
    name: &str,
    kind: &'a str,
    url: String,
    requests: impl Fn() -> usize + Copy + 'a,
) -> Subject<'a> {
    Subject::new(name, move || {
        let task = Task::holding(Duration::from_millis(1)).by(kind);
        let spawn = |_| Worker::spawn(&url, "bench", &task);
        let workers = (0..4).map(spawn).collect();
        let (outcome, sent) = contest(workers, Duration::from_secs(2), || {
            let before = requests();
            move || requests() - before
        });
        let mut round = outcome.round();
        if sent > 0 {
            round.add("requests", per(sent, outcome.count()));
        }
        round
    })
}
