//! What locks cost: commands, threads, sockets, memory and keys; and that nothing of it stays behind.
//!
//! Whatever is counted in a process is counted in one of its own.

#![cfg(all(target_os = "linux", feature = "redis"))]

mod commands;

use std::env;
use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{LockGuard, Locker};
use support::{
    Child, Fault, Proxy, RedisServer, Stopwatch, hear, is_child, resident_bytes, say, sockets,
    threads_named, wait_until,
};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// All threads of the crate have names that begin with this.
const OURS: &str = "crosslock-";

const URL: &str = "TEST_URL";
const DAY_MS: i64 = 24 * 3600 * 1000;

/// Prints a number that only a reader of the output judges.
fn report(what: &str, number: impl Display) {
    println!("{what}: {number}");
}

/// Asserts that the crate's threads, which have nothing to do any more, end soon; says when they have. There are `threads`
/// of them at most.
#[track_caller]
fn tell_that_threads_end(threads: usize) {
    /// What the system may take to end one. Those of the stopwatch get their turn before a thousand that end do.
    const EACH: Duration = Duration::from_micros(200);
    let threads = u32::try_from(threads).unwrap();
    let watch = Stopwatch::start();
    wait_until("the threads to end", PATIENCE, || threads_named(OURS) == 0);
    let ended = watch.assert_within(Duration::from_millis(100) + EACH * threads);
    say(&format!("ended {}", ended.as_millis()));
}

// Many locks

const LOCKS: usize = 1000;
const TTL: Duration = Duration::from_secs(3);
/// A lock that has no more milliseconds left than this is renewed late: it is due with 2000 left.
const LATE: i64 = 1000;

/// Holds many locks until it is told to check them, then to drop them.
#[test]
fn child_holds_many_locks() {
    if !is_child("child_holds_many_locks") {
        return;
    }
    let sockets_before = sockets();
    assert_eq!(threads_named(OURS), 0);
    let url = env::var(URL).unwrap();
    let lock = Locker::builder(&url).ttl(TTL).build().unwrap();
    let guards: Vec<_> = (0..LOCKS)
        .map(|n| lock.lock(&n.to_string()).unwrap())
        .collect();
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
    let begun = Instant::now();
    drop(guards);
    say(&format!("dropped {}", begun.elapsed().as_millis()));
    drop(lock);
    tell_that_threads_end(LOCKS);
    assert_eq!(sockets(), sockets_before);
    say("clean");
    // The parent looks at the server while this process lives.
    hear();
}

/// The smallest time to live of all locks.
fn smallest_pttl(connection: &mut redis::Connection) -> i64 {
    let mut pipeline = redis::pipe();
    for n in 0..LOCKS {
        pipeline.cmd("PTTL").arg(format!("{{crosslock:{n}}}"));
    }
    let left: Vec<i64> = pipeline.query(connection).unwrap();
    assert_eq!(left.len(), LOCKS);
    left.into_iter().min().unwrap()
}

/// Returns the smallest time to live that any of the locks has had for so long, at most until one is renewed late.
fn smallest_pttl_during(server: &RedisServer, during: Duration) -> i64 {
    let mut connection = server.connection();
    let end = Instant::now() + during;
    let mut smallest = i64::MAX;
    // All that was ever seen, and at once: -2 is a lock that is gone.
    while Instant::now() < end && smallest >= LATE {
        smallest = smallest.min(smallest_pttl(&mut connection));
        thread::sleep(Duration::from_millis(10));
    }
    smallest
}

fn assert_only_counters_are_left(server: &RedisServer) {
    let keys = server.keys();
    assert_eq!(keys.len(), LOCKS);
    for key in keys {
        assert!(key.ends_with("}:fence"), "{key}");
        let left = server.pttl(&key);
        assert!(0 < left && left <= DAY_MS, "{key} lives for {left} ms");
    }
}

#[test]
fn thousand_locks_are_held_for_several_ttls_and_leave_nothing_behind() {
    let server = RedisServer::start();
    let url = server.url();
    let mut child = Child::spawn("child_holds_many_locks", &[(URL, url.as_str())]);
    child.wait_for("holds", PATIENCE);

    let watch = Stopwatch::start();
    let smallest = smallest_pttl_during(&server, 3 * TTL);
    child.tell("check");
    let lost = child.wait_for("lost", PATIENCE);
    if smallest < LATE || lost != "0 0" {
        let found = format!("renewed with only {smallest} of 3000 ms left, and lost: {lost}");
        return watch.assert_late(Duration::from_secs(1), TTL, found);
    }
    drop(watch);
    let resident: u64 = child.wait_for("resident", PATIENCE).parse().unwrap();
    assert_eq!(
        child.wait_for("renewers", PATIENCE),
        LOCKS.to_string(),
        "one for each guard"
    );
    report("smallest time to live in ms", smallest);
    report("resident KiB", resident / 1024);
    assert!(resident < 64 << 20, "{resident} bytes");

    child.tell("drop");
    report("dropped in ms", child.wait_for("dropped", PATIENCE));
    report("threads ended in ms", child.wait_for("ended", PATIENCE));
    child.wait_for("clean", PATIENCE);
    wait_until("the connections to be closed", PATIENCE, || {
        server.connected_clients() == 0
    });
    assert_only_counters_are_left(&server);
    child.hang_up();
    assert!(child.wait(PATIENCE).success());
}

/// Holds many locks and waits for others, closes its locker, and drops everything.
#[test]
fn child_closes_with_many_locks() {
    if !is_child("child_closes_with_many_locks") {
        return;
    }
    let sockets_before = sockets();
    let lock = Locker::builder(&env::var(URL).unwrap()).build().unwrap();
    let guards: Vec<_> = (0..LOCKS)
        .map(|n| lock.lock(&n.to_string()).unwrap())
        .collect();
    let waiters: Vec<_> = (0..20)
        .map(|n| {
            let lock = lock.clone();
            thread::spawn(move || lock.lock(&n.to_string()).map(drop))
        })
        .collect();
    let watch = Stopwatch::start();
    lock.close();
    let closed = watch.assert_within(Duration::from_millis(500));
    for waiter in waiters {
        assert!(waiter.join().unwrap().is_err());
    }
    assert!(guards.iter().all(|guard| guard.lost().try_recv().is_ok()));
    say(&format!("closed {}", closed.as_millis()));
    drop((guards, lock));
    tell_that_threads_end(LOCKS);
    assert_eq!(sockets(), sockets_before);
}

#[test]
fn nothing_of_a_closed_locker_stays() {
    let server = RedisServer::start();
    let url = server.url();
    let mut child = Child::spawn("child_closes_with_many_locks", &[(URL, url.as_str())]);
    report(
        "1000 locks closed in ms",
        child.wait_for("closed", PATIENCE),
    );
    report("threads ended in ms", child.wait_for("ended", PATIENCE));
    assert!(child.wait(PATIENCE).success());
    wait_until("all to be released", PATIENCE, || {
        server.keys().iter().all(|key| key.ends_with(":fence"))
    });
}

#[test]
fn every_key_has_a_ttl_from_the_moment_it_exists() {
    let server = RedisServer::start();
    let lock = Locker::builder(&server.url()).ttl(TTL).build().unwrap();
    let assert_all_end = |when: &str, most: usize| {
        let keys = server.keys();
        assert_eq!(keys.len(), most, "{when}: {keys:?}");
        for key in keys {
            let left = server.pttl(&key);
            assert!(
                0 < left && left <= DAY_MS,
                "{when}: {key} lives for {left} ms"
            );
        }
    };
    // Its first renewal is a second away.
    let guard = lock.lock("a").unwrap();
    let left = server.pttl("{crosslock:a}");
    assert!(left <= 3000, "{left}");
    assert_all_end("held", 2);
    guard.unlock().unwrap();
    assert_all_end("released", 1);
}

// Threads

#[test]
fn child_counts_the_threads_of_a_loop() {
    if !is_child("child_counts_the_threads_of_a_loop") {
        return;
    }
    let lock = Locker::open(&env::var(URL).unwrap()).unwrap();
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
    tell_that_threads_end(2);
    drop(lock);
}

#[test]
fn locks_in_a_loop_share_one_renewal_thread() {
    let server = RedisServer::start();
    let url = server.url();
    let mut child = Child::spawn("child_counts_the_threads_of_a_loop", &[(URL, url.as_str())]);
    let most: usize = child.wait_for("most", PATIENCE).parse().unwrap();
    report("most threads", most);
    assert!((1..=2).contains(&most), "{most} threads");
    report("threads ended in ms", child.wait_for("ended", PATIENCE));
    assert!(child.wait(PATIENCE).success());
}

#[cfg(feature = "file")]
#[test]
fn child_holds_a_file() {
    if !is_child("child_holds_a_file") {
        return;
    }
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
    support::wait_until("both threads, alone", PATIENCE, || {
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
    support::wait_until(
        "the directory, the file of each name, and doors",
        PATIENCE,
        || open() == 3 + doors(),
    );
    drop(guards);
    assert!(doors() < 10 && open() == 3 + doors());
    drop((lock, other));
    assert_eq!((open(), doors()), (0, 0));
    tell_that_threads_end(2);
}

#[cfg(feature = "file")]
#[test]
fn guard_of_a_file_has_a_thread_that_looks_and_leaves_nothing_open() {
    let mut child = Child::spawn("child_holds_a_file", &[]);
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn child_drops_while_a_renewal_hangs() {
    if !is_child("child_drops_while_a_renewal_hangs") {
        return;
    }
    let sockets_before = sockets();
    let lock = Locker::builder(&env::var(URL).unwrap())
        .renew_every(Duration::from_millis(100))
        .build()
        .unwrap();
    let guard = lock.lock("a").unwrap();
    say("holds");
    assert_eq!(hear().as_deref(), Some("drop"));
    let watch = Stopwatch::start();
    drop(guard);
    let dropped = watch.assert_within(Duration::from_millis(500));
    say(&format!("dropped {}", dropped.as_millis()));
    drop(lock);
    tell_that_threads_end(2);
    assert_eq!(sockets(), sockets_before);
}

#[test]
fn guard_that_is_dropped_while_a_renewal_hangs_leaves_no_thread() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let url = proxy.url();
    let mut child = Child::spawn("child_drops_while_a_renewal_hangs", &[(URL, url.as_str())]);
    child.wait_for("holds", PATIENCE);
    proxy.set(Fault::BlackHole);
    let before = proxy.requests();
    wait_until("a renewal", PATIENCE, || proxy.requests() > before);
    child.tell("drop");
    report("dropped in ms", child.wait_for("dropped", PATIENCE));
    report("threads ended in ms", child.wait_for("ended", PATIENCE));
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn child_loses_its_guards() {
    if !is_child("child_loses_its_guards") {
        return;
    }
    let lock = Locker::builder(&env::var(URL).unwrap())
        .ttl(Duration::from_millis(200))
        .max_hold(Duration::from_millis(1))
        .build()
        .unwrap();
    let guards: Vec<_> = (0..20)
        .map(|n| lock.lock(&n.to_string()).unwrap())
        .collect();
    for guard in &guards {
        guard.lost().recv_timeout(PATIENCE).unwrap();
    }
    drop(guards);
    drop(lock);
    tell_that_threads_end(20);
}

#[test]
fn lost_guards_leave_nothing_behind() {
    let server = RedisServer::start();
    let url = server.url();
    let mut child = Child::spawn("child_loses_its_guards", &[(URL, url.as_str())]);
    report("threads ended in ms", child.wait_for("ended", PATIENCE));
    assert!(child.wait(PATIENCE).success());
    let keys = server.keys();
    assert!(keys.iter().all(|key| key.ends_with(":fence")), "{keys:?}");
    wait_until("the connections to be closed", PATIENCE, || {
        server.connected_clients() == 0
    });
}
