//! One thread, one free lock: what a cycle of lock and unlock costs, next to the least it could cost.
//!
//! ```text
//! cargo bench --bench uncontended [-- CYCLES]
//! ```
//!
//! A private `redis-server` is started. Rounds of all subjects are interleaved in one run, so that noise meets
//! them alike, and server and client have a CPU each; read the ratios, not the times. The floor is what any lock on Redis needs: `SET key value NX
//! PX` and a compare-and-delete by EVALSHA on one connection of the `redis` crate, with TCP_NODELAY.
//!
//! Where the rest goes, on Redis by TCP: about 15 % are the server's, which runs two scripts where the floor has a SET and
//! one, and in them keeps the fencing counter (TIME and SET to take a lock, INCR to release it), which says, too,
//! whether there is a line. The subject `scripts` shows that part: the two scripts of this crate, sent by the connection
//! of the floor. The other 5 % are the client's: an owner, the process id (twice, against fork), a read with a timeout,
//! the clock, the local queue, and the lease. Nothing waits for the renewal thread, which is there already. By unix socket
//! the same microseconds are a larger part of a shorter trip.

#[path = "../src/engine/redis/lua.rs"]
mod lua;
mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use crosslock::{Locker, MutexGuard};
use redis::Connection;

use support::{Server, connect, percentile, pin};

const ROUNDS: usize = 100;

fn main() {
    let cycles = support::argument().unwrap_or(10_000_usize);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(directory.path());
    pin(&server);
    let mut subjects = vec![
        Subject::new("floor, tcp", None, floor(&server.tcp())),
        Subject::new("scripts, tcp", Some(0), scripts_alone(&server.tcp())),
        Subject::new("crosslock, tcp", Some(0), ours(&server.tcp())),
        Subject::new("floor, unix", None, floor(&server.unix())),
        Subject::new("scripts, unix", Some(3), scripts_alone(&server.unix())),
        Subject::new("crosslock, unix", Some(3), ours(&server.unix())),
        Subject::new(
            "crosslock, file:",
            None,
            ours(&format!("file://{}", directory.path().display())),
        ),
        Subject::new("crosslock, memory:", None, ours("memory:")),
        Subject::new("read, tcp", Some(0), read(&server.tcp())),
        Subject::new("permit, tcp", Some(0), permit(&server.tcp())),
        Subject::new("lock, GET, SET, unlock", None, by_hand(&server.tcp())),
        Subject::new("Mutex<u64> += 1, tcp", Some(10), increment(&server.tcp())),
    ];
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for round in 0..=ROUNDS {
        // What runs before a subject has an influence on it.
        fastrand::shuffle(&mut order);
        for &subject in &order {
            // The first round loads scripts and warms caches.
            subjects[subject].run(cycles / ROUNDS, round > 0);
        }
    }
    report(&mut subjects);
}

struct Subject {
    name: &'static str,
    /// The index of the subject it is compared with.
    floor: Option<usize>,
    cycle: Box<dyn FnMut()>,
    times: Vec<Duration>,
}

impl Subject {
    fn new(name: &'static str, floor: Option<usize>, cycle: impl FnMut() + 'static) -> Self {
        Subject {
            name,
            floor,
            cycle: Box::new(cycle),
            times: Vec::new(),
        }
    }

    fn run(&mut self, cycles: usize, record: bool) {
        for _ in 0..cycles {
            let start = Instant::now();
            (self.cycle)();
            if record {
                self.times.push(start.elapsed());
            }
        }
    }
}

fn report(subjects: &mut [Subject]) {
    subjects
        .iter_mut()
        .for_each(|subject| subject.times.sort_unstable());
    println!(
        "{:<24} {:>9} {:>9} {:>7}",
        "lock + unlock", "p50 us", "p99 us", "ratio"
    );
    for subject in &*subjects {
        let p50 = percentile(&subject.times, 50);
        let ratio = subject.floor.map_or(String::new(), |floor| {
            format!("{:.2}", p50 / percentile(&subjects[floor].times, 50))
        });
        let p99 = percentile(&subject.times, 99);
        println!("{:<24} {p50:>9.1} {p99:>9.1} {ratio:>7}", subject.name);
    }
}

fn ours(url: &str) -> impl FnMut() + use<> {
    let lock = Locker::open(url).expect("an engine");
    move || {
        let guard = lock.lock("bench").expect("a free lock");
        black_box(&guard);
        guard.unlock().expect("our lock");
    }
}

fn read(url: &str) -> impl FnMut() + use<> {
    let lock = Locker::open(url).expect("an engine");
    move || {
        let guard = lock.read("read").expect("a free lock");
        black_box(&guard);
        guard.unlock().expect("our lock");
    }
}

fn permit(url: &str) -> impl FnMut() + use<> {
    let lock = Locker::open(url).expect("an engine");
    let permits = lock.semaphore("permits", 3).expect("a semaphore");
    move || {
        let guard = permits.acquire().expect("a free permit");
        black_box(&guard);
        guard.unlock().expect("our permit");
    }
}

fn increment(url: &str) -> impl FnMut() + use<> {
    let lock = Locker::open(url).expect("an engine");
    let counter = lock.mutex("counter", 0_u64).expect("a mutex");
    move || {
        let mut guard = counter.lock().expect("a free lock");
        *guard += 1;
        MutexGuard::unlock(guard).expect("our lock");
    }
}

/// The same without `Mutex<u64>`.
fn by_hand(url: &str) -> impl FnMut() + use<> {
    let lock = Locker::open(url).expect("an engine");
    let mut connection = connect(url);
    move || {
        let guard = lock.lock("by hand").expect("a free lock");
        let mut get = redis::cmd("GET");
        let value: Option<u64> = get.arg("by hand").query(&mut connection).expect("GET");
        let mut set = redis::cmd("SET");
        set.arg("by hand").arg(value.unwrap_or_default() + 1);
        set.exec(&mut connection).expect("SET");
        guard.unlock().expect("our lock");
    }
}

/// The least that a lock on Redis needs.
fn floor(url: &str) -> impl FnMut() + use<> {
    const DELETE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    let mut connection = connect(url);
    let delete = load(&mut connection, DELETE);
    move || {
        let mut set = redis::cmd("SET");
        set.arg("floor")
            .arg("owner")
            .arg("NX")
            .arg("PX")
            .arg(10_000);
        let set: Option<String> = set.query(&mut connection).expect("SET");
        assert!(set.is_some());
        let mut call = redis::cmd("EVALSHA");
        call.arg(&delete).arg(1).arg("floor").arg("owner");
        let deleted: i64 = call.query(&mut connection).expect("EVALSHA");
        assert_eq!(deleted, 1);
    }
}

/// The scripts of this crate without the crate.
fn scripts_alone(url: &str) -> impl FnMut() + use<> {
    let mut connection = connect(url);
    let acquire = load(&mut connection, &lua::whole("lock/acquire"));
    let release = load(&mut connection, &lua::whole("lock/release"));
    move || {
        let call = |script: &str, argument: i64| {
            let mut call = redis::cmd("EVALSHA");
            call.arg(script).arg(6).arg("{scripts}");
            for kind in ["fence", "queue", "waiters", "read_queue", "holders"] {
                call.arg(format!("{{scripts}}:{kind}"));
            }
            call.arg("owner").arg(argument).arg("x");
            call
        };
        let token: i64 = call(&acquire, 10_000)
            .query(&mut connection)
            .expect("acquire");
        let released: i64 = call(&release, token + 1)
            .query(&mut connection)
            .expect("release");
        assert_eq!(released, 1);
    }
}

fn load(connection: &mut Connection, code: &str) -> String {
    redis::cmd("SCRIPT")
        .arg("LOAD")
        .arg(code)
        .query(connection)
        .expect("SCRIPT LOAD")
}
