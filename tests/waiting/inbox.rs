//! The one thread and connection that hear of grants, for threads that come and go.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use support::puppet::Puppet;
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
    let before = line(&server);
    for _ in 0..3 {
        // Those of their calls, too.
        server.query::<usize>(&["CLIENT", "KILL", "TYPE", "normal"]);
        let killed: usize = server.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        assert_eq!(killed, 3);
        wait_for_inboxes(&server, 3);
    }
    assert_eq!(line(&server), before);
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

/// Only the connection of the inbox is silent, from the request on that `wait` makes: a second subscription, to two
/// more channels.
fn silence_inbox<T>(server: &RedisServer, proxy: &Proxy, wait: impl FnOnce() -> T) -> T {
    proxy.lose_next_reply("subscribe", false);
    let waiting = wait();
    wait_until("the request that is answered to nobody", PATIENCE, || {
        let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        clients.contains(" sub=4 ")
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

/// Heartbeats are minutes away, so a grant that is lost makes a test fail.
fn patient(server: &RedisServer) -> Locker {
    Locker::builder(&server.url()).ttl(LONG).build().unwrap()
}

#[test]
fn waiter_that_gives_up_leaves_the_grants_of_others_to_them() {
    let server = RedisServer::start();
    let (holder, waiting) = (Locker::open(&server.url()).unwrap(), patient(&server));
    let guards = ["a", "b", "c"].map(|name| holder.lock(name).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| wait_in_vain(&waiting, "a", millis(500)));
        wait_until_heard(&server, "crosslock", "a");
        let others = ["b", "c"].map(|name| {
            let one = super::waiting(&waiting, name);
            wait_until_heard(&server, "crosslock", name);
            one.wait_until_asleep();
            one
        });
        wait_until("the first to give up", PATIENCE, || {
            server.query::<u64>(&["EXISTS", "{crosslock:a}:waiters"]) == 0
        });
        let [_, b, c] = guards;
        b.unlock().unwrap();
        others[0].result().unlock().unwrap();
        c.unlock().unwrap();
        others[1].result().unlock().unwrap();
    });
}

#[test]
fn waiter_that_finds_the_connection_at_its_end_is_heard_on_another() {
    let server = RedisServer::start();
    let holder = Locker::open(&server.url()).unwrap();
    let waiting = patient(&server);
    // By a waiter that comes at once, and by one that comes when another connection was made.
    for found_after in [millis(0), millis(1_500), millis(0)] {
        let guard = holder.lock("a").unwrap();
        open_inbox(&server, &waiting, 1);
        server.query::<usize>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        thread::sleep(found_after);
        let waiter = super::waiting(&waiting, "a");
        wait_until_heard(&server, "crosslock", "a");
        wait_for_inboxes(&server, 1);
        guard.unlock().unwrap();
        waiter.result().unlock().unwrap();
    }
    assert_nothing_left(&server);
}

/// Threads of two lockers that want the same names, some of them only for a moment, in two namespaces.
#[test]
fn waiters_that_come_and_go_lose_no_grant() {
    const NAMES: usize = 6;
    const CYCLES: usize = 150;
    let server = RedisServer::start();
    let lockers = [patient(&server), patient(&server)];
    let (together, had) = (Barrier::new(4 * NAMES), AtomicUsize::new(0));
    let begun = now();
    thread::scope(|scope| {
        for lock in &lockers {
            for n in 0..NAMES {
                let lock = lock.with_namespace(&format!("space-{}", n % 2)).unwrap();
                let (name, together, had) = (n.to_string(), &together, &had);
                let (again, its) = (lock.clone(), name.clone());
                scope.spawn(move || {
                    together.wait();
                    for _ in 0..CYCLES {
                        lock.lock(&name).unwrap().unlock().unwrap();
                        had.fetch_add(1, Ordering::Relaxed);
                    }
                });
                scope.spawn(move || {
                    together.wait();
                    for cycle in 0..CYCLES {
                        // Spread over 0 to 3 ms.
                        let timeout = Duration::from_micros(cycle as u64 * 7_919 % 3_000);
                        let _ = again.try_lock_for(&its, timeout);
                    }
                });
            }
        }
    });
    assert_eq!(had.load(Ordering::Relaxed), 2 * NAMES * CYCLES);
    report("all had their turns after", now() - begun);
    // A heartbeat comes after 70 s at the earliest.
    assert!(now() - begun < millis(70_000), "a grant was lost");
    assert_nothing_left(&server);
}
