//! Values that a server keeps, and a counter whose processes are killed and stopped.
//!
//! Each process notes in a file, a byte each, when it is about to unlock and what came of it: a byte that was written
//! outlives the process.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Instant;

use crosslock::{Locker, MutexGuard};

use super::*;
use support::{Child, Proxy, RedisServer};

/// Adds one so often on each of so many threads of one locker, with pauses of any length in between, so that one thread
/// may come at every step of another's; gives what came of it.
fn count(lock: &Locker, threads: u64, each: u64) -> u64 {
    let counter = lock.mutex(NAME, 0u64).unwrap();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    let begun = Instant::now();
                    let pause = Duration::from_nanos(fastrand::u64(0..LONGEST_PAUSE));
                    while begun.elapsed() < pause {}
                    let mut guard = counter.lock().unwrap();
                    *guard += 1;
                    MutexGuard::unlock(guard).unwrap();
                }
            });
        }
    });
    counter.peek().unwrap()
}

/// About what an increment takes.
const LONGEST_PAUSE: u64 = 200_000;

#[test]
fn threads_of_one_locker_lose_no_change() {
    let server = RedisServer::start();
    for threads in [2, 3, 8] {
        let lock = open(&server)
            .with_namespace(&format!("t{threads}"))
            .unwrap();
        let each = 40_000 / threads;
        assert_eq!(
            count(&lock, threads, each),
            threads * each,
            "{threads} threads"
        );
    }
}

#[test]
fn timed_call_ends_in_time_although_the_value_does_not_arrive() {
    const TIMEOUT: Duration = millis(300);
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let holder = open(&server).lock(NAME).unwrap();
    let waiting = Locker::open(&proxy.url()).unwrap().mutex(NAME, 0).unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let _ = within(TIMEOUT + millis(100), || waiting.try_lock_for(TIMEOUT));
        });
        wait_for_queue(&server, 1);
        proxy.lose_next_reply(":value", false);
        holder.unlock().unwrap();
        waiter.join().unwrap();
    });
}

const NOTES: &str = "TEST_NOTES";

/// What processes note.
const BEGUN: u8 = b'b';
const OK: u8 = b'o';
const LOST: u8 = b'l';

/// What became of increments.
#[derive(Debug)]
struct Outcomes {
    ok: u64,
    lost: u64,
    /// Wasn't known, or wasn't noted any more.
    unseen: u64,
}

/// What all have noted there.
fn outcomes(notes: &Path) -> Outcomes {
    let files = fs::read_dir(notes).unwrap();
    let words = files.flat_map(|file| fs::read(file.unwrap().path()).unwrap());
    let words: Vec<_> = words.collect();
    let count = |word: u8| words.iter().filter(|one| **one == word).count() as u64;
    let (ok, lost) = (count(OK), count(LOST));
    let unseen = count(BEGUN) - ok - lost;
    Outcomes { ok, lost, unseen }
}

/// A process that increments until it is killed.
fn start(server: &RedisServer, ttl: Duration, notes: &Path) -> Child {
    let file = notes.join(fs::read_dir(notes).unwrap().count().to_string());
    File::create(&file).unwrap();
    let (url, ttl) = (server.url(), ttl.as_millis().to_string());
    let args = [(URL, &*url), (TTL, &ttl), (NOTES, file.to_str().unwrap())];
    let mut child = Child::spawn("increments and notes", &args);
    child.tell(&u64::MAX.to_string());
    child
}

#[test]
fn increments_that_were_committed_count_although_processes_are_killed_and_stopped() {
    const INCREMENTS: u64 = 10_000;
    const TTL: Duration = millis(300);
    let server = RedisServer::start();
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path();
    let mut children = [(); 4].map(|()| start(&server, TTL, notes));
    let mut random = fastrand::Rng::new();
    let (begun, mut kills) = (Instant::now(), 0);
    while outcomes(notes).ok < INCREMENTS {
        thread::sleep(millis(random.u64(500..1000)));
        let one = random.usize(..children.len());
        if random.bool() {
            children[one].kill();
            children[one] = start(&server, TTL, notes);
            kills += 1;
        } else {
            children[one].stop();
            thread::sleep(TTL + millis(150));
            children[one].cont();
        }
        assert!(begun.elapsed() < 10 * PATIENCE, "{:?}", outcomes(notes));
    }
    for child in &mut children {
        child.kill();
        kills += 1;
    }
    let Outcomes { ok, lost, unseen } = outcomes(notes);
    let value: u64 = server.get(VALUE).unwrap().parse().unwrap();
    let story = format!("{value} with {ok} committed, {lost} lost, {unseen} unseen, {kills} kills");
    assert!((ok..=ok + unseen).contains(&value), "{story}");
    // So the upper bound says something.
    assert!(unseen <= kills, "{story}");
    // The next one finds it as it is, and clears the line of the dead.
    let counter = open(&server).mutex(NAME, 0).unwrap();
    assert_eq!(*counter.lock().unwrap(), value);
    assert_nothing_left(&server);
}
