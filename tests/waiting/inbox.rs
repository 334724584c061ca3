//! The one thread and connection that hear of grants.

use super::watch::{
    LOCK, assert_nothing_left, assert_served_in_order, holder, inboxes, line, processes_in_line,
    wait_for_inboxes, wait_for_line,
};
use super::*;
use support::puppet::{Puppet, SCRIPT};
use support::{Child, Proxy, RedisServer};

#[test]
fn inboxes_open_at_the_first_contention() {
    const LOCKERS: usize = 30;
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let waiters: Vec<_> = (0..LOCKERS)
        .map(|_| waiting(&Locker::open(&server.url()).unwrap(), "a"))
        .collect();
    wait_for_inboxes(&server, LOCKERS);
    wait_for_line(&server, LOCKERS);
    guard.unlock().unwrap();
    // Nobody listens any more, so each lets it go, with the last clone of its locker.
    drop(waiters);
    wait_for_inboxes(&server, 0);
    assert_nothing_left(&server);
}

#[test]
fn one_inbox_serves_all_threads_names_and_namespaces_and_ends_with_the_last_clone() {
    let server = RedisServer::start();
    let args = [(URL, server.url()), (TTL, "60000".into())];
    let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut child = Child::spawn("waits for many", &args);
    assert_eq!(child.wait_for("before", PATIENCE), "0");
    assert_eq!(inboxes(&server), 0);
    child.tell("go");
    child.wait_for("wait", PATIENCE);
    wait_until("nine lines of one", PATIENCE, || {
        let keys = server.keys();
        let lines = keys.iter().filter(|key| key.ends_with(":queue"));
        lines
            .filter(|key| server.query::<u64>(&["LLEN", key]) == 1)
            .count()
            == 9
    });
    let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    assert_eq!(clients.lines().count(), 1, "{clients}");
    // Two channels for each namespace: its own, and that of leases that were broken.
    assert!(clients.contains(" sub=6 "), "{clients}");
    child.tell("go");
    assert_eq!(child.wait_for("waiting", PATIENCE), "1");
    assert_eq!(child.wait_for("after", PATIENCE), "1");
    assert_eq!(inboxes(&server), 1);
    child.tell("go");
    assert_eq!(child.wait_for("clone", PATIENCE), "1");
    let ended: u64 = child.wait_for("ended", PATIENCE).parse().unwrap();
    report("the inbox ended so many ms after its locker", ended);
    wait_for_inboxes(&server, 0);
    assert_nothing_left(&server);
}

#[test]
fn killed_inboxes_come_back_and_everyone_is_served() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let mut processes = processes_in_line(&server, 3, LONG);
    for _ in 0..3 {
        let killed: usize = server.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        assert_eq!(killed, 3);
        wait_for_inboxes(&server, 3);
    }
    assert_eq!(line(&server).len(), 3);
    let token = guard.fencing_token();
    guard.unlock().unwrap();
    assert_served_in_order(&mut processes, token, false);
    assert_nothing_left(&server);
}

#[test]
fn waiters_are_served_while_their_inboxes_are_killed() {
    let server = RedisServer::start();
    let (lock, guard) = holder(&server);
    let mut processes = Puppet::start_many(3, &server.url(), millis(1_500));
    let line_up = |processes: &mut [Puppet]| {
        processes.iter_mut().for_each(|process| process.pass("a"));
        wait_for_line(&server, processes.len());
    };
    let assert_served = |processes: &mut [Puppet]| {
        for process in processes {
            process.holding();
            process.unlocked();
        }
    };
    drop(guard);
    for _ in 0..20 {
        let guard = lock.lock("a").unwrap();
        line_up(&mut processes);
        server.query::<usize>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        guard.unlock().unwrap();
        server.query::<usize>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        assert_served(&mut processes);
    }
    // An inbox that was killed when its last waiter had left is opened by the next.
    let guard = lock.lock("a").unwrap();
    line_up(&mut processes);
    wait_for_inboxes(&server, processes.len());
    guard.unlock().unwrap();
    assert_served(&mut processes);
    assert_nothing_left(&server);
}

#[test]
fn waiters_that_may_not_subscribe_are_served_in_order() {
    let rule = "user deaf on >secret ~* resetchannels +@all";
    let server = RedisServer::builder().acl(&[rule]).start();
    let (_, guard) = holder(&server);
    let mut processes = Puppet::start_many(3, &server.url_as("deaf:secret"), LONG);
    for (at, process) in processes.iter_mut().enumerate() {
        process.pass("a");
        wait_for_line(&server, at + 1);
    }
    assert_eq!(inboxes(&server), 0);
    let (token, released) = (guard.fencing_token(), now());
    guard.unlock().unwrap();
    assert_served_in_order(&mut processes, token, false);
    report("three that poll were served within", now() - released);
    assert_nothing_left(&server);
}

#[test]
fn grant_that_could_not_be_published_is_found_by_the_next_heartbeat() {
    const LEASE: Duration = millis(900);
    let rule = "user mute on >secret ~* resetchannels +@all";
    let server = RedisServer::builder().acl(&[rule]).start();
    let mute = Locker::open(&server.url_as("mute:secret")).unwrap();
    let guard = mute.lock("a").unwrap();
    let mut processes = processes_in_line(&server, 2, LEASE);
    let watch = Stopwatch::start();
    let (token, released) = (guard.fencing_token(), now());
    guard.unlock().unwrap();
    let first = processes[0].holding();
    assert!(first.token > token && !first.abandoned, "{first:?}");
    let waited = first.since.saturating_sub(released);
    watch.assert_took(waited, LEASE / 3 + millis(100));
    processes[0].unlocked();
    assert_served_in_order(&mut processes[1..], first.token, false);
    assert_nothing_left(&server);
}

/// Only the connection of the inbox is silent, from the request on that `wait` makes: a second subscription.
fn silence_inbox<T>(server: &RedisServer, proxy: &Proxy, wait: impl FnOnce() -> T) -> T {
    proxy.lose_next_reply("subscribe", false);
    let waiting = wait();
    wait_until("the request that is answered to nobody", PATIENCE, || {
        let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        clients.contains(" sub=2 ")
    });
    waiting
}

#[test]
fn grants_that_a_silent_connection_swallows_are_found_by_heartbeats() {
    const LEASE: Duration = millis(1_500);
    let server = RedisServer::start();
    let (lock, guard) = holder(&server);
    let proxy = Proxy::start(server.addr());
    let deaf = Locker::builder(&proxy.url())
        .ttl(LEASE)
        .io_timeout(PATIENCE);
    let deaf = deaf.build().unwrap();
    let waiter = waiting(&deaf, "a");
    wait_for_line(&server, 1);
    wait_for_inboxes(&server, 1);
    guard.unlock().unwrap();
    waiter.result().unlock().unwrap();

    let [lock_there, deaf_there] =
        [&lock, &deaf].map(|lock| lock.with_namespace("elsewhere").unwrap());
    let elsewhere = lock_there.lock("a").unwrap();
    let there = silence_inbox(&server, &proxy, || waiting(&deaf_there, "a"));
    let guard = lock.lock("a").unwrap();
    let here = waiting(&deaf, "a");
    wait_for_line(&server, 1);
    let owner = line(&server).remove(0);
    let (watch, released) = (Stopwatch::start(), now());
    guard.unlock().unwrap();
    assert_eq!(server.get(LOCK), Some(owner), "it was granted");
    let guard = here.result();
    let waited = now() - released;
    report(
        "a grant that was swallowed, with a ttl of 1.5 s, was found after",
        waited,
    );
    watch.assert_took(waited, LEASE / 3 + millis(100));
    assert!(!guard.was_abandoned());
    guard.unlock().unwrap();
    elsewhere.unlock().unwrap();
    there.result().unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn further_namespaces_are_heard() {
    let server = RedisServer::start();
    let holder = Locker::open(&server.url()).unwrap();
    let waiter = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    for space in ["one", "two", "three"] {
        let [holder, waiter] = [&holder, &waiter].map(|lock| lock.with_namespace(space).unwrap());
        let guard = holder.lock("a").unwrap();
        let waiter = waiting(&waiter, "a");
        let waiters = format!("{{{space}:a}}:waiters");
        wait_until("it to be heard", PATIENCE, || {
            let waiters: Vec<String> = server.query(&["HVALS", &waiters]);
            waiters
                .iter()
                .any(|waiter| waiter.contains(&format!(" {space}:inbox:")))
        });
        guard.unlock().unwrap();
        waiter.result().unlock().unwrap();
        assert_eq!(inboxes(&server), 1);
    }
    assert_nothing_left(&server);
}

// Forks

#[test]
fn forked_child_has_an_inbox_of_its_own() {
    let server = RedisServer::start();
    let (lock, parents) = holder(&server);
    let childs = lock.lock("b").unwrap();
    let ttl = LONG.as_millis().to_string();
    let script = "
        give-up a
        fork
            lock b
            unlock b
            lock b
            unlock b
        end
        lock a
        unlock a
        join
    ";
    let args = [(URL, &*server.url()), (TTL, &*ttl), (SCRIPT, script)];
    let mut child = Child::spawn("script", &args);
    wait_for_inboxes(&server, 2);
    let hears = |waiters: &str| {
        let waiters: Vec<String> = server.query(&["HVALS", waiters]);
        waiters.iter().any(|waiter| waiter.contains(":inbox:"))
    };
    wait_until("both to be heard", PATIENCE, || {
        hears("{crosslock:a}:waiters") && hears("{crosslock:b}:waiters")
    });
    childs.unlock().unwrap();
    parents.unlock().unwrap();
    assert!(child.wait(PATIENCE).success());
    assert_nothing_left(&server);
    wait_for_inboxes(&server, 0);
}
