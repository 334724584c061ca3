//! The same locks on every engine, and on etcd and ZooKeeper against what these need at least.
//!
//! ```text
//! cargo bench -p crosslock-tests --features etcd,zookeeper --bench consensus [-- CYCLES]
//! ```
//!
//! Three members of etcd, three of ZooKeeper and a Redis server are started on this machine, all with their usual durability: each
//! write of etcd and ZooKeeper waits for the disk, Redis' doesn't. `CROSSLOCK_TEST_ETCD` and `CROSSLOCK_TEST_ZOOKEEPER` name the
//! programs; `tests/run.sh` finds or downloads them.
//!
//! **Alone**: one thread locks and unlocks a free lock; one cycle of each subject is run after the other, in an order that changes each
//! time, so that noise meets them alike. `lock` and `unlock` are against the requests that they need at least, on a connection
//! of this bench to the same member: on etcd a transaction of the same size each, on ZooKeeper `create` and then `getChildren`, and
//! a `delete`.
//!
//! **Contended**: four processes lock, hold for 1 ms and unlock in a loop. `gap` is from one holder's last moment to the next one's
//! first, `fair` how often the least served process had the lock against the most served. `requests` are those that the
//! servers were sent for each acquisition; renewals, pings and watches count. `recipe` is what etcd's own `concurrency` package does, by
//! four threads of this bench: put the own key, look for the one ahead of it, watch that, look again, check the own key, delete it.
//!
//! **Peers**, only where `benches/consensus/peers.sh` starts this: etcd's Go package and Curator lock and unlock a free lock, in turn with
//! crosslock, and for each what it costs the servers.
//!
//! Read the ratios, not the times.

mod alone;
mod contended;
mod etcd;
mod peers;
mod places;
#[path = "../support/mod.rs"]
mod shared;
mod zookeeper;

fn main() {
    if shared::serve() {
        return;
    }
    let cycles = shared::argument().unwrap_or(400_usize);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let places = places::Places::start(directory.path());
    if peers::are_named() {
        return peers::run(&places, cycles);
    }
    alone::run(&places, cycles);
    contended::run(&places);
}
