//! Waiters and holders that are killed, and waiters that stand still, also when they are granted the lock.

use super::*;
use support::RedisServer;
use support::puppet::Puppet;

#[test]
fn killed_waiters_are_passed_over_by_the_release() {
    const KILLED: usize = 10;
    let server = RedisServer::start();
    let (lock, guard) = holder(&server);
    let mut live = Puppet::start_many(1, &server.url(), LONG);
    let mut guard = Some(guard);
    let watch = Stopwatch::start();
    let mut delays = Vec::new();
    for _ in 0..5 {
        let held = guard.take().unwrap_or_else(|| lock.lock("a").unwrap());
        let mut killed = processes_in_line(&server, KILLED, LONG);
        live[0].pass("a");
        wait_for_line(&server, KILLED + 1);
        killed.iter_mut().for_each(Puppet::kill);
        // The server learns of it when it looks at their connections next.
        wait_for_inboxes(&server, 1);
        assert_eq!(line(&server).len(), KILLED + 1);
        let released = now();
        held.unlock().unwrap();
        let holding = live[0].holding();
        assert!(!holding.abandoned);
        delays.push(holding.since.saturating_sub(released));
        live[0].unlocked();
        assert_nothing_left(&server);
    }
    report(
        "held so long after the release, with ten dead in line",
        &delays,
    );
    // Where nothing else runs it is less than 5 ms.
    watch.assert_took(median(delays), millis(5));
}

#[test]
fn stopped_waiter_costs_the_others_the_one_lease_that_it_was_granted() {
    const LEASE: Duration = millis(800);
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let mut stopped = processes_in_line(&server, 1, LEASE).remove(0);
    let mut others = processes_in_line(&server, 2, LEASE);
    stopped.stop();
    let (watch, released) = (Stopwatch::start(), now());
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    assert!(
        server.get(LOCK).is_some(),
        "it was granted to the one that stands still"
    );
    let first = others[0].holding();
    let waited = first.since.saturating_sub(released);
    report("a stopped waiter with a ttl of 800 ms cost", waited);
    watch.assert_took(waited, LEASE + millis(100));
    assert!(first.abandoned && first.token > token, "{first:?}");
    others[0].unlocked();
    assert_served_in_order(&mut others[1..], first.token, false);

    // It finds that it has nothing, and is served as everyone is.
    stopped.cont();
    let holding = stopped.holding();
    assert!(
        holding.token > first.token && !holding.abandoned,
        "{holding:?}"
    );
    stopped.unlocked();
    assert_nothing_left(&server);
}

#[test]
fn waiter_that_has_stood_still_for_long_costs_the_others_nothing() {
    const TTL: Duration = millis(600);
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    // Its next heartbeat is overdue after 800 ms.
    let mut stopped = processes_in_line(&server, 1, TTL).remove(0);
    let owner = line(&server).remove(0);
    let mut others = processes_in_line(&server, 2, LONG);
    stopped.stop();
    let waiter = || server.query::<Option<String>>(&["HGET", WAITERS, &owner]);
    wait_until("its heartbeat to be overdue for its ttl", PATIENCE, || {
        let time: Vec<u64> = server.query(&["TIME"]);
        let overdue = waiter().expect("nobody asks meanwhile");
        let overdue: u64 = overdue.split(' ').next().unwrap().parse().unwrap();
        let overdue = Duration::from_millis(overdue) + TTL;
        Duration::from_secs(time[0]) + Duration::from_micros(time[1]) > overdue
    });
    let watch = Stopwatch::start();
    let (released, token) = (now(), guard.fencing_token());
    guard.unlock().unwrap();
    let first = others[0].holding();
    assert!(!first.abandoned && first.token > token, "{first:?}");
    watch.assert_took(first.since.saturating_sub(released), millis(100));
    others[0].unlocked();
    assert_served_in_order(&mut others[1..], first.token, false);
    stopped.cont();
    stopped.holding();
    stopped.unlocked();
    assert_nothing_left(&server);
}

/// A process that is alone in line for "a", stopped, granted the lock and still stopped.
fn granted_while_stopped(server: &RedisServer, ttl: Duration) -> Puppet {
    let (_, guard) = holder(server);
    let mut process = Puppet::start(&server.url(), ttl);
    process.lock("a");
    wait_for_line(server, 1);
    process.stop();
    let owner = line(server).remove(0);
    guard.unlock().unwrap();
    assert_eq!(server.get(LOCK), Some(owner));
    process
}

#[test]
fn grant_that_has_run_out_is_not_believed() {
    let server = RedisServer::start();
    let mut process = granted_while_stopped(&server, millis(500));
    let lock = Locker::open(&server.url()).unwrap();
    let guard = lock.try_lock_for("a", PATIENCE).unwrap();
    let guard = guard.expect("the lease ran out");
    assert!(guard.was_abandoned());

    process.cont();
    // It asks, and stands in line again.
    wait_for_line(&server, 1);
    guard.verify().unwrap();
    assert!(!process.has_said_that_it_holds());
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    let holding = process.holding();
    assert!(holding.token > token && !holding.abandoned, "{holding:?}");
    assert!(process.verifies());
    process.unlock();
    assert_nothing_left(&server);
}

#[test]
fn grant_that_has_run_out_while_nobody_came_is_asked_for_anew() {
    let server = RedisServer::start();
    let mut process = granted_while_stopped(&server, millis(500));
    let granted = server.counter(FENCE).unwrap();
    wait_until("the lease to end", PATIENCE, || server.get(LOCK).is_none());
    process.cont();
    let holding = process.holding();
    assert!(holding.token > granted, "{holding:?} after {granted}");
    assert!(process.verifies());
    process.unlock();
    assert_nothing_left(&server);
}

#[test]
fn late_grant_that_is_still_good_is_used() {
    const LEASE: Duration = millis(2_000);
    let server = RedisServer::start();
    let mut process = granted_while_stopped(&server, LEASE);
    let granted = server.counter(FENCE).unwrap();
    // More than half of it is over.
    wait_until("the lease to age", PATIENCE, || server.pttl(LOCK) < 900);
    process.cont();
    let holding = process.holding();
    assert_eq!((holding.token, holding.abandoned), (granted, false));
    // It was renewed, and goes on being so.
    assert!(server.pttl(LOCK) > 900);
    thread::sleep(LEASE);
    assert!(process.verifies());
    process.unlock();
    assert_nothing_left(&server);
}
