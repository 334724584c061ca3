//! One thread, free locks: what a cycle of lock and unlock costs on one server, by Sentinel, and in a cluster.
//!
//! ```text
//! cargo bench --bench topologies [-- CYCLES]
//! ```
//!
//! A server, a master with three sentinels, and a cluster of three masters are started, none with replicas. All servers
//! share one CPU, and this process has the other. One cycle of each subject is run after the other, in an order that
//! changes each time, so that noise meets them alike; read the ratios, not the times.
//!
//! `PING` is two round trips that do nothing, and `scripts` are the two scripts of this crate, both sent by a
//! connection of the `redis` crate to the server that has the lock: what these cost more in a cluster is the servers'.
//! `ratio` is against the same on one server, and of `lock_all` in a cluster against three names on one slot. `above`
//! is what `crosslock` takes beyond `scripts`, the library's part. `evalsha` are the commands of a cycle, and `rounds`
//! those at the server that has most of them. `lock_all` on 3 masters takes two round trips more: it asks one after the
//! other, and raises and unlocks on all at once.

mod support;

use crosslock::{LockGuard, Locker};
use support::{Column, Counting, Held, Lock, P50, P99, Pings, Place, Round, Scripts, Subject};
use support::{Table, column, ours, per, ratio, timed};

/// How many cycles the commands are counted of, before any is timed.
const COUNTED: usize = 100;

const KEY: &str = "{crosslock:bench}";

const COLUMNS: [Column; 6] = [
    column("p50 us", "cycle us", P50, 1),
    column("p99 us", "cycle us", P99, 1),
    ratio("cycle us").digits(3),
    Column::above("above", "cycle us"),
    column("evalsha", "evalsha", P50, 2),
    column("rounds", "rounds", P50, 2),
];

fn main() {
    let cycles = support::argument().unwrap_or(5_000_usize);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = [Place::single, Place::sentinels, Place::cluster];
    let places = start.map(|start| start(directory.path()));
    support::pin_places(&places);
    let table = Table::new(&["lock + unlock", ""], &COLUMNS, cycles);
    // Apart from each other: what is at one place only would keep that place warm.
    table.run(places.iter().flat_map(alone).collect());
    table.run(several(&places[0], &places[2]));
}

/// A cycle of it is a round.
fn subject<'a>(what: &str, place: &Place, mut lock: impl Lock + 'a) -> Subject<'a> {
    let counting = Counting::start(place.admins());
    for _ in 0..COUNTED {
        lock.lock();
        lock.unlock();
    }
    let usage = counting.end();
    let commands = Round::default()
        .with("evalsha", per(usage.evalsha, COUNTED))
        .with("rounds", per(usage.most, COUNTED));
    let name = format!("{what}|{}", place.kind);
    timed(&name, 1, lock).with(commands)
}

/// Of one name, the same three at each place.
fn alone(place: &Place) -> [Subject<'static>; 3] {
    let server = place.server_of(KEY).tcp();
    let scripts = Scripts::to(&server, &format!("{KEY}alone"));
    let crosslock = ours(&place.url(0), "bench");
    [
        subject("PING, twice", place, Pings::to(&server)).to("PING, twice|one server"),
        subject("scripts", place, scripts).to("scripts|one server"),
        subject("crosslock", place, crosslock)
            .to("crosslock|one server")
            .above(&format!("scripts|{}", place.kind)),
    ]
}

fn several(single: &Place, cluster: &Place) -> Vec<Subject<'static>> {
    let together = ["{bench}:1", "{bench}:2", "{bench}:3"].map(str::to_owned);
    let apart = cluster.names(3);
    let (on_one, on_slot) = ("lock_all of 3|one server", "  on one slot|cluster");
    vec![
        subject("lock_all of 3", single, all(single, "", &together)).to(on_one),
        subject("  on one slot", cluster, all(cluster, "", &together)).to(on_one),
        subject("  on 3 masters", cluster, all(cluster, "crosslock", &apart)).to(on_slot),
    ]
}

fn all(place: &Place, namespace: &str, names: &[String]) -> impl Lock + use<> {
    let locker = Locker::open(&place.url(0)).expect("an engine");
    let locker = locker.with_namespace(namespace).expect("a namespace");
    let names = names.to_vec();
    let take = move || Some((0, locker.lock_all(&names).expect("free locks")));
    Held::new(take, LockGuard::unlock)
}
