//! Values that a server keeps.

use std::thread;
use std::time::Instant;

use crosslock::{Locker, MutexGuard};

use super::*;
use support::{Proxy, RedisServer};

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
