//! Waiters and holders that are killed, and waiters that stand still.

use super::watch::{
    LOCK, WAITERS, assert_nothing_left, assert_served_in_order, holder, line, processes_in_line,
    wait_for_inboxes, wait_for_line,
};
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

/// Between which moments the lease ends: they are read on both sides of the question.
fn end_of_lease(server: &RedisServer) -> [Duration; 2] {
    let before = now();
    let left = server.pttl(LOCK).try_into();
    let left = millis(left.expect("the lock is still there"));
    [before + left, now() + left]
}

#[test]
fn head_of_the_line_follows_a_killed_holder_when_its_ttl_is_over() {
    const LEASE: Duration = millis(900);
    let server = RedisServer::start();
    let mut delays = Vec::new();
    for _ in 0..3 {
        let mut holder = Puppet::start(&server.url(), LEASE);
        holder.lock("a");
        let token = holder.holding().token;
        // They learn from the holder's ttl when to look.
        let mut processes = processes_in_line(&server, 3, LONG);
        let watch = Stopwatch::start();
        holder.kill();
        let [earliest, latest] = end_of_lease(&server);
        let first = processes[0].holding();
        assert!(
            first.abandoned && first.token > token,
            "{first:?} after {token}"
        );
        assert!(first.since + millis(2) >= earliest, "in too early");
        let late = first.since.saturating_sub(latest);
        watch.assert_took(late, millis(100));
        delays.push(late);
        processes[0].unlocked();
        assert_served_in_order(&mut processes[1..], first.token, false);
        assert_nothing_left(&server);
    }
    report(
        "held so long after the end of a killed holder's lease",
        &delays,
    );
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

#[test]
fn whole_line_that_was_killed_leaves_the_lock_free() {
    let server = RedisServer::start();
    let (lock, guard) = holder(&server);
    let mut killed = processes_in_line(&server, 4, LONG);
    killed.iter_mut().for_each(Puppet::kill);
    wait_for_inboxes(&server, 0);
    guard.unlock().unwrap();
    assert_nothing_left(&server);
    let guard = lock.try_lock("a").unwrap().expect("nobody waits");
    assert!(!guard.was_abandoned());
}
