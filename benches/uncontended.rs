//! One thread, one free lock: what a cycle of lock and unlock costs, next to the least it could cost.
//!
//! ```text
//! cargo bench --bench uncontended [-- CYCLES]
//! ```
//!
//! A private `redis-server` is started. Rounds of all subjects are interleaved in one run, so that noise meets them
//! alike, and server and client have a CPU each; read the ratios, not the times. The floor is what any lock on Redis
//! needs: `SET key value NX PX` and a compare-and-delete by EVALSHA on one connection of the `redis` crate, with
//! TCP_NODELAY.
//!
//! Where the rest goes, on Redis by TCP: about 15 % are the server's, which runs two scripts where the floor has a SET
//! and one, and in them keeps the fencing counter (TIME and SET to take a lock, INCR to release it), which says, too,
//! whether there is a line. The subject `scripts` shows that part: the two scripts of this crate, sent by the
//! connection of the floor. The other 5 % are the client's: an owner, the process id (twice, against fork), a read with
//! a timeout, the clock, the local queue, and the lease. Nothing waits for the renewal thread, which is there already.
//! By unix socket the same microseconds are a larger part of a shorter trip.

mod support;

use crosslock::{LockGuard, Locker, MutexGuard};
use support::{Column, Floor, Held, Lock, P50, P99, Scripts, Server, Table};
use support::{ask, column, connect, ours, ratio, timed};

const ROUNDS: usize = 100;

const COLUMNS: [Column; 3] = [
    column("p50 us", "cycle us", P50, 1),
    column("p99 us", "cycle us", P99, 1),
    ratio("cycle us"),
];

fn main() {
    let count = support::argument().unwrap_or(10_000_usize) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    support::pin(&server);
    let mut subjects = Vec::new();
    for (way, url) in [("tcp", server.tcp()), ("unix", server.unix())] {
        let floor = format!("floor, {way}");
        let scripts = Scripts::to(&url, "{scripts}");
        let [scripts_too, crosslock] =
            ["scripts", "crosslock"].map(|what| format!("{what}, {way}"));
        subjects.push(timed(&floor, count, Floor::to(&url)));
        subjects.push(timed(&scripts_too, count, scripts).to(&floor));
        subjects.push(timed(&crosslock, count, ours(&url, "bench")).to(&floor));
    }
    let file = format!("file://{}", directory.path().display());
    let tcp = server.tcp();
    let (floor, by_hand) = ("floor, tcp", "lock, GET, SET, unlock");
    subjects.extend([
        timed("crosslock, file:", count, ours(&file, "bench")),
        timed("crosslock, memory:", count, ours("memory:", "bench")),
        timed("read, tcp", count, read(&tcp)).to(floor),
        timed("permit, tcp", count, permit(&tcp)).to(floor),
        timed(by_hand, count, by_hand_of(&tcp)),
        timed("Mutex<u64> += 1, tcp", count, increment(&tcp)).to(by_hand),
    ]);
    let table = Table::new(&["lock + unlock"], &COLUMNS, ROUNDS).after(1);
    table.run(subjects);
}

fn open(url: &str) -> Locker {
    Locker::open(url).expect("an engine")
}

fn read(url: &str) -> impl Lock + use<> {
    let locker = open(url);
    let take = move || Some((0, locker.read("read").expect("a free lock")));
    Held::new(take, LockGuard::unlock)
}

fn permit(url: &str) -> impl Lock + use<> {
    let permits = open(url).semaphore("permits", 3).expect("a semaphore");
    let take = move || Some((0, permits.acquire().expect("a free permit")));
    Held::new(take, LockGuard::unlock)
}

fn increment(url: &str) -> impl Lock + use<> {
    let counter = open(url).mutex("counter", 0_u64).expect("a mutex");
    let take = move || {
        let mut guard = counter.lock().expect("a free lock");
        *guard += 1;
        Some((0, guard))
    };
    Held::new(take, MutexGuard::unlock)
}

/// The same without `Mutex<u64>`.
fn by_hand_of(url: &str) -> impl Lock + use<> {
    let locker = open(url);
    let mut connection = connect(url);
    let take = move || {
        let guard = locker.lock("by hand").expect("a free lock");
        let value: Option<u64> = ask(&mut connection, &["GET", "by hand"]);
        let next = (value.unwrap_or_default() + 1).to_string();
        ask::<()>(&mut connection, &["SET", "by hand", &next]);
        Some((0, guard))
    };
    Held::new(take, LockGuard::unlock)
}
