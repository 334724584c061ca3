//! Threads that wait, in processes of their own.

use std::fs;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::thread;

use crosslock::{Error, LockGuard};

use super::pending::queued;
use super::*;
use support::{Stopwatch, hear, now, say, threads_named, wait_until};

const THREAD: &str = "crosslock-inbox";
const HAND_OVER: &str = "TEST_HAND_OVER_US";
/// How many times a process is to hold the lock.
const HOLDS: &str = "TEST_HOLDS";
const THREADS: usize = 4;

/// Counts in a process of its own: threads that wait for three names in each of three namespaces.
pub(crate) fn wait_for_many() {
    let (holder, waiter) = (locker(), locker());
    let names = ["x", "y", "z"];
    let spaces =
        |lock: &Locker| ["one", "two", "three"].map(|name| lock.with_namespace(name).unwrap());
    let lock_all = |space| names.map(|name| Locker::lock(space, name).unwrap());
    let guards = spaces(&holder).each_ref().map(lock_all);
    // None of this is contention.
    let tried = spaces(&waiter).map(|space| space.try_lock("x").unwrap());
    assert!(tried.iter().all(Option::is_none));
    (0..20).for_each(|_| drop(waiter.lock("free").unwrap()));
    say(&format!("before {}", threads_named(THREAD)));
    hear();
    let wait = |space| names.map(|name| queued(space, name, 3));
    let threads = spaces(&waiter).each_ref().map(wait);
    let threads = threads.into_iter().flatten().flatten();
    let threads: Vec<_> = threads.collect();
    say("wait");
    hear();
    say(&format!("waiting {}", threads_named(THREAD)));
    drop(guards);
    threads.iter().for_each(|thread| drop(thread.result()));
    say(&format!("after {}", threads_named(THREAD)));
    hear();
    drop(threads);
    tell_that_the_inbox_ends_with(waiter);
    hear();
}

/// The last locker; but not before its clone.
fn tell_that_the_inbox_ends_with(last: Locker) {
    let clone = last.clone();
    drop(last);
    say(&format!("clone {}", threads_named(THREAD)));
    let watch = Stopwatch::start();
    drop(clone);
    wait_until("the inbox to end", PATIENCE, || threads_named(THREAD) == 0);
    let ended = watch.assert_within(Duration::from_millis(100));
    say(&format!("ended {}", ended.as_millis()));
}

pub(crate) fn hand_over_and_keep() {
    let builder = Locker::builder(&arg(URL)).ttl(Duration::from_millis(500));
    let lock = builder.hand_over(Duration::from_secs(600)).build().unwrap();
    let mut guard = lock.lock("a").unwrap();
    for thread in queued(&lock, "a", 20) {
        guard.unlock().unwrap();
        guard = thread.result();
    }
    say(&format!("holds {}", guard.fencing_token()));
    hear();
}

pub(crate) fn wait_with_threads() {
    let lock = Locker::open(&arg(URL)).unwrap();
    let threads = queued(&lock, "a", THREADS);
    say("waits");
    hear();
    // Behind the others of all processes.
    for thread in threads {
        let guard = thread.outcome.recv().unwrap().unwrap();
        say(&format!("holds {}", guard.fencing_token()));
        guard.unlock().unwrap();
    }
    say("done");
}

/// A token, and a time in which it was held, and valid.
#[derive(Clone, Copy, Debug)]
struct Hold {
    token: u64,
    from: Duration,
    until: Duration,
}

/// One call, with or without a timeout.
fn attempt(lock: &Locker) -> Option<LockGuard> {
    let timeout = Duration::from_micros(fastrand::u64(..5_000));
    let outcome = match fastrand::u64(..8) {
        0 => lock.try_lock("a"),
        1 | 2 => lock.lock("a").map(Some),
        3 => lock.try_lock_for("a", timeout / 16),
        _ => lock.try_lock_for("a", timeout),
    };
    match outcome {
        // A timeout is over before the answer comes if the machine, or this process, stands still for a moment.
        Err(Error::Unavailable { .. }) => None,
        outcome => outcome.unwrap(),
    }
}

/// Holds a lock for a moment.
fn hold(guard: &LockGuard) -> Option<Hold> {
    let token = guard.fencing_token();
    let from = now();
    // Asked after each look at the clock: it was valid at that time.
    guard.check().ok()?;
    if fastrand::u64(..64) == 0 {
        thread::sleep(Duration::from_micros(fastrand::u64(..300)));
    }
    let until = now();
    let until = if guard.is_held() { until } else { from };
    Some(Hold { token, from, until })
}

/// Takes the lock until `left` is used up by all threads of the process.
fn contend(lock: &Locker, left: &AtomicI64) -> (Vec<Hold>, u64) {
    let (mut holds, mut in_vain) = (Vec::new(), 0);
    while left.load(Relaxed) > 0 {
        let Some(guard) = attempt(lock) else {
            in_vain += 1;
            continue;
        };
        left.fetch_sub(1, Relaxed);
        holds.extend(hold(&guard));
    }
    (holds, in_vain)
}

pub(crate) fn contend_for_long() {
    let hand_over = Duration::from_micros(arg(HAND_OVER).parse().unwrap());
    let builder = Locker::builder(&arg(URL)).ttl(Duration::from_millis(arg(TTL).parse().unwrap()));
    let lock = builder.hand_over(hand_over).build().unwrap();
    let left = AtomicI64::new(arg(HOLDS).parse().unwrap());
    say("ready");
    hear();
    let (mut lines, mut in_vain) = (String::new(), 0);
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|_| scope.spawn(|| contend(&lock, &left)));
        for thread in threads.collect::<Vec<_>>() {
            let (holds, vain) = thread.join().unwrap();
            in_vain += vain;
            for Hold { token, from, until } in holds {
                lines += &format!("{token} {} {}\n", from.as_nanos(), until.as_nanos());
            }
        }
    });
    drop(lock);
    fs::write(arg(FILE), lines).unwrap();
    say(&format!("done {in_vain}"));
    // It lives until it isn't stopped any more.
    hear();
}
