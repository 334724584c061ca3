//! Threads that wait, in processes of their own.

use super::pending::queued;
use super::*;
use support::{Stopwatch, hear, say, threads_named, wait_until};

const THREAD: &str = "crosslock-inbox";
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
