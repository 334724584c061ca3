//! Leases that threads of one process hand to each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use super::*;
use support::puppet::Puppet;
use support::{Child, Proxy, RedisServer};

/// Long enough for all that a test does with one lease.
const SLICE: Duration = Duration::from_secs(600);

/// A locker behind a proxy, which counts what it sends.
fn counted(server: &RedisServer, ttl: Duration, hand_over: Duration) -> (Proxy, Locker) {
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).ttl(ttl);
    let lock = builder.hand_over(hand_over).build().unwrap();
    (proxy, lock)
}

#[test]
fn threads_hand_a_lease_over_without_the_server_or_ask_it_each_time() {
    const THREADS: usize = 6;
    let server = RedisServer::start();
    for (slice, each) in [(SLICE, 0), (Duration::ZERO, 2)] {
        let (proxy, lock) = counted(&server, LONG, slice);
        // The server knows the scripts from now on.
        let guard = lock.lock("a").unwrap();
        guard.verify().unwrap();
        guard.unlock().unwrap();
        let mut guard = lock.lock("a").unwrap();
        let threads = queued(&lock, "a", THREADS);
        let before = proxy.requests();
        for thread in &threads {
            let token = guard.fencing_token();
            guard.unlock().unwrap();
            guard = thread.result();
            assert!(guard.fencing_token() > token);
            assert!(!guard.was_abandoned() && guard.is_held());
            assert!(guard.lost().is_empty());
        }
        let before = before + each * THREADS as u64;
        assert_eq!(proxy.requests(), before);
        guard.verify().unwrap();
        let token = guard.fencing_token();
        guard.unlock().unwrap();
        assert_eq!(proxy.requests(), before + 2);
        assert_nothing_left(&server);
        let next = Locker::open(&server.url()).unwrap().lock("a").unwrap();
        assert!(next.fencing_token() > token && !next.was_abandoned());
    }
}

#[test]
fn lease_that_is_half_over_is_not_handed_over() {
    const TTL: Duration = millis(1_500);
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).ttl(TTL).renew(false);
    let lock = builder.hand_over(SLICE).build().unwrap();
    let guard = lock.lock("a").unwrap();
    let next = waiting(&lock, "a");
    next.wait_until_asleep();
    wait_until("half of the lease", PATIENCE, || {
        guard.remaining() < TTL / 2
    });
    guard.unlock().unwrap();
    let guard = next.result();
    assert!(guard.remaining() > TTL / 2, "{:?}", guard.remaining());
    guard.unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn handed_over_lease_is_renewed_and_its_loss_is_told() {
    let server = RedisServer::start();
    const TTL: Duration = millis(300);
    let (_proxy, lock) = counted(&server, TTL, SLICE);
    let guard = lock.lock("a").unwrap();
    let next = waiting(&lock, "a");
    next.wait_until_asleep();
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let guard = next.result();
    assert_eq!(guard.fencing_token(), token + 1, "it was handed over");
    let watch = Stopwatch::start();
    let end = now() + millis(1_000);
    while now() < end {
        if let Err(error) = guard.check() {
            return watch.assert_late(TTL / 2, TTL, error);
        }
        thread::sleep(millis(10));
    }
    guard.verify().unwrap();
    assert!(guard.lost().is_empty());
    server.query::<()>(&["DEL", "{crosslock:a}"]);
    let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
    assert_eq!(lost.name, "a");
    assert!(!guard.is_held());
}

#[test]
fn another_process_gets_its_turn_while_threads_hand_over() {
    const TURNS: usize = 1_000;
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let mut other = Puppet::start(&server.url(), Duration::from_secs(10));
    let done = AtomicBool::new(false);
    let watch = Stopwatch::start();
    let mut waits = thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    drop(lock.lock("a").unwrap());
                }
            });
        }
        // The first contention opens the inboxes.
        other.take_turns("a", 100);
        other.waits();
        wait_for_inboxes(&server, 2);
        other.take_turns("a", TURNS);
        let waits = other.waits();
        done.store(true, SeqCst);
        waits
    });
    waits.sort_unstable();
    let (p50, p99, longest) = (waits[TURNS / 2], waits[TURNS * 99 / 100], waits[TURNS - 1]);
    report(
        "waits beside 8 threads that hand over: p50, p99, longest",
        (p50, p99, longest),
    );
    // Where nothing else runs it is 3 ms.
    watch.assert_took(p99, millis(20));
    assert_nothing_left(&server);
}

// A process that dies with a lease that was handed over

#[test]
fn token_after_a_process_that_died_is_above_those_of_its_hand_overs() {
    let server = RedisServer::start();
    let mut child = Child::spawn("hands over and keeps", &[(URL, &server.url())]);
    let token: u64 = child.wait_for("holds", PATIENCE).parse().unwrap();
    child.kill();
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.lock("a").unwrap();
    assert!(guard.was_abandoned());
    assert!(
        guard.fencing_token() > token,
        "{} after {token}",
        guard.fencing_token()
    );
    guard.unlock().unwrap();
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

#[test]
fn tokens_increase_over_more_hand_overs_than_one_lease_may_make() {
    const EACH: usize = 1_000;
    let server = RedisServer::start();
    let (proxy, lock) = counted(&server, LONG, SLICE);
    let first = lock.lock("a").unwrap();
    let cycles = |lock: &Locker| {
        // Taken while the lock is held, so they are in the order of holding.
        let one = |_| lock.lock("a").map(|guard| (now(), guard.fencing_token()));
        (0..EACH).map(one).collect::<Result<Vec<_>>>()
    };
    let threads: Vec<_> = (0..4).map(|_| calling(&lock, cycles)).collect();
    threads.iter().for_each(Pending::wait_until_asleep);
    let before = proxy.requests();
    drop(first);
    let mut held: Vec<_> = threads.iter().flat_map(Pending::result_of_much).collect();
    held.sort_unstable();
    assert!(held.is_sorted_by(|one, next| one.1 < next.1));
    let cycles = held.len();
    report(
        "requests for 4,000 acquisitions by four threads",
        proxy.requests() - before,
    );
    assert_eq!(cycles, 4 * EACH);
    // At most 1024 hand-overs a lease.
    assert!(proxy.requests() - before >= 2 * (cycles as u64 / 1_025));
    assert_nothing_left(&server);
}

#[test]
fn tokens_increase_when_the_server_forgets_all_after_a_storm_of_hand_overs() {
    let server = RedisServer::start();
    let (_proxy, lock) = counted(&server, LONG, SLICE);
    let (largest, end) = (AtomicU64::new(0), now() + millis(500));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while now() < end {
                    let guard = lock.lock("a").unwrap();
                    let token = guard.fencing_token();
                    assert!(largest.fetch_max(token, SeqCst) < token);
                }
            });
        }
    });
    server.query::<()>(&["FLUSHALL"]);
    let token = lock.lock("a").unwrap().fencing_token();
    assert!(token > largest.into_inner());
}

#[test]
fn process_in_line_is_next_when_the_slice_is_over() {
    let server = RedisServer::start();
    let (_proxy, lock) = counted(&server, LONG, millis(100));
    let mut other = Puppet::start(&server.url(), LONG);
    let mut guard = lock.lock("a").unwrap();
    let threads = queued(&lock, "a", 2);
    other.pass("a");
    wait_for_line(&server, 1);
    thread::sleep(millis(110));
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let holding = other.holding();
    assert!(holding.token > token);
    for thread in &threads {
        guard = thread.result();
        assert!(guard.fencing_token() > holding.token);
        guard.unlock().unwrap();
    }
    other.unlocked();
    assert_nothing_left(&server);
}
