//! What locks cost in a process, counted in one that does nothing else: threads, sockets, files and memory.

use crosslock::LockGuard;

use super::*;
use support::{Stopwatch, hear, resident_bytes, say, sockets, threads_named, wait_until};

/// All threads of the crate have names that begin with this.
const OURS: &str = "crosslock-";
const LOCKS: usize = 1000;

/// Asserts that the crate's threads, which have nothing to do any more, end soon. There are `threads` of them at most.
#[track_caller]
fn assert_threads_end(threads: usize) {
    /// What the system may take to end one. Those of the stopwatch get their turn before a thousand that end do.
    const EACH: Duration = Duration::from_micros(200);
    let threads = u32::try_from(threads).unwrap();
    let watch = Stopwatch::start();
    wait_until("the threads to end", PATIENCE, || threads_named(OURS) == 0);
    watch.assert_within(Duration::from_millis(100) + EACH * threads);
}

/// The same, and that the sockets have been closed.
#[track_caller]
fn assert_clean(threads: usize, sockets_before: usize) {
    assert_threads_end(threads);
    assert_eq!(sockets(), sockets_before);
}

fn take_many(locker: &Locker, count: usize) -> Vec<LockGuard> {
    let names = (0..count).map(|n| n.to_string());
    names.map(|name| locker.lock(&name).unwrap()).collect()
}

pub(crate) fn hold_many() {
    let sockets_before = sockets();
    assert_eq!(threads_named(OURS), 0);
    let url = arg(URL);
    let lock = Locker::builder(&url)
        .ttl(Duration::from_secs(3))
        .build()
        .unwrap();
    let guards = take_many(&lock, LOCKS);
    say("holds");

    assert_eq!(hear().as_deref(), Some("check"));
    let lost = guards.iter().filter(|guard| !guard.is_held());
    let told = guards.iter().filter(|guard| !guard.lost().is_empty());
    say(&format!("lost {} {}", lost.count(), told.count()));
    say(&format!("resident {}", resident_bytes()));
    say(&format!("renewers {}", threads_named("crosslock-renew")));
    let verified = guards.iter().map(LockGuard::verify);
    verified.for_each(|verified| verified.unwrap());

    assert_eq!(hear().as_deref(), Some("drop"));
    drop((guards, lock));
    assert_clean(LOCKS, sockets_before);
    say("clean");
    // The parent looks at the server while this process lives.
    hear();
}

pub(crate) fn loop_and_count() {
    let lock = Locker::open(&arg(URL)).unwrap();
    assert_eq!(threads_named(OURS), 0, "a locker alone has no thread");
    let mut most = 0;
    for _ in 0..300 {
        let guard = lock.lock("a").unwrap();
        most = most.max(threads_named("crosslock-renew"));
        guard.unlock().unwrap();
        most = most.max(threads_named("crosslock-renew"));
    }
    say(&format!("most {most}"));
    // The locker may stay: a thread that nobody needs ends by itself.
    assert_threads_end(2);
    drop(lock);
}

#[cfg(feature = "file")]
pub(crate) fn hold_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}", dir.path().display());
    let lock = Locker::open(&url).unwrap();
    let open = || support::open_files_under(&dir);
    let doors = || {
        let entries = std::fs::read_dir(&dir).unwrap();
        entries.count() - 2
    };
    assert_eq!((threads_named(OURS), open()), (0, 1), "the directory");
    let guards = [lock.lock("a").unwrap(), lock.lock("b").unwrap()];
    assert_eq!(
        (open(), doors()),
        (5, 2),
        "the directory, and a file and a door for each"
    );
    for lock in [&lock, &Locker::open(&url).unwrap()] {
        assert!(lock.try_lock("a").unwrap().is_none());
    }
    // A thread gives itself its name when it begins to run, and that of an attempt that failed rests before it ends.
    wait_until("both threads, alone", PATIENCE, || {
        [threads_named("crosslock-renew"), threads_named(OURS)] == [guards.len(); 2]
    });
    let other = Locker::open(&url).unwrap();
    let timeout = Duration::from_millis(5);
    for name in ["a", "b"].repeat(20) {
        assert!(other.try_lock_for(name, timeout).unwrap().is_none());
    }
    // A door for all that follow each other, and one more for each that a busy machine was late to release.
    let kept = doors();
    assert!((3..10).contains(&kept), "{kept}");
    wait_until(
        "the directory, the file of each name, and doors",
        PATIENCE,
        || open() == 3 + doors(),
    );
    drop(guards);
    assert!(doors() < 10 && open() == 3 + doors());
    drop((lock, other));
    assert_eq!((open(), doors()), (0, 0));
    assert_threads_end(2);
}

pub(crate) fn drop_while_a_renewal_hangs() {
    let sockets_before = sockets();
    let lock = Locker::builder(&arg(URL))
        .renew_every(Duration::from_millis(100))
        .build()
        .unwrap();
    let guard = lock.lock("a").unwrap();
    say("holds");
    assert_eq!(hear().as_deref(), Some("drop"));
    let watch = Stopwatch::start();
    drop(guard);
    watch.assert_within(Duration::from_millis(500));
    drop(lock);
    assert_clean(2, sockets_before);
}

pub(crate) fn lose_guards() {
    let lock = Locker::builder(&arg(URL))
        .ttl(Duration::from_millis(200))
        .max_hold(Duration::from_millis(1))
        .build()
        .unwrap();
    let guards = take_many(&lock, 20);
    for guard in &guards {
        guard.lost().recv_timeout(PATIENCE).unwrap();
    }
    drop((guards, lock));
    assert_threads_end(20);
}
