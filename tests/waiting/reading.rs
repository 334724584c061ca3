//! How the connection that hears of grants is read for threads that come and go.
//!
//! Heartbeats are minutes away, so a grant that is lost makes a test fail.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::watch::{assert_nothing_left, open_inbox, wait_for_inboxes};
use super::*;
use support::RedisServer;

fn patient(server: &RedisServer) -> Locker {
    Locker::builder(&server.url()).ttl(LONG).build().unwrap()
}

#[track_caller]
fn wait_until_heard(server: &RedisServer, name: &str) {
    let waiters = format!("{{crosslock:{name}}}:waiters");
    wait_until("it to be heard", PATIENCE, || {
        let waiters: Vec<String> = server.query(&["HVALS", &waiters]);
        waiters.iter().any(|waiter| waiter.contains(":inbox:"))
    });
}

#[test]
fn waiter_that_gives_up_leaves_the_grants_of_others_to_them() {
    let server = RedisServer::start();
    let (holder, waiting) = (Locker::open(&server.url()).unwrap(), patient(&server));
    let guards = ["a", "b", "c"].map(|name| holder.lock(name).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| wait_in_vain(&waiting, "a", millis(500)));
        wait_until_heard(&server, "a");
        let others = ["b", "c"].map(|name| {
            let one = super::waiting(&waiting, name);
            wait_until_heard(&server, name);
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
        wait_until_heard(&server, "a");
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
