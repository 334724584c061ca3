//! Who reads the connection that hears of grants: a thread that waits alone, or the inbox's own thread.
//!
//! Heartbeats are minutes away, so a grant that is lost makes a test fail.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::watch::{assert_nothing_left, open_inbox, wait_for_inboxes};
use super::*;
use support::{Child, RedisServer, hear, is_child, say};

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

/// How often the thread of the inbox has slept.
fn sleeps_of_the_thread() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let ours = |path: &std::path::PathBuf| {
        let name = fs::read_to_string(path.join("comm"));
        name.is_ok_and(|name| name.trim() == "crosslock-inbox")
    };
    let thread = tasks.map(|task| task.path()).find(ours).unwrap();
    let status = fs::read_to_string(thread.join("status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn child_is_granted_locks() {
    if !is_child("reading::child_is_granted_locks") {
        return;
    }
    let lock = Locker::open(&arg(URL)).unwrap();
    say("ready");
    while let Some(order) = hear() {
        if order == "count" {
            say(&format!("slept {}", sleeps_of_the_thread()));
            continue;
        }
        lock.lock("a").unwrap().unlock().unwrap();
        say("had");
    }
}

#[test]
fn grant_wakes_the_thread_that_waits_and_no_other() {
    const GRANTS: u64 = 100;
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let mut child = Child::spawn("reading::child_is_granted_locks", &[(URL, &server.url())]);
    child.wait_for("ready", PATIENCE);
    let (mut slept, begun) = (Vec::new(), now());
    for round in 0..=GRANTS {
        let guard = lock.lock("a").unwrap();
        child.tell("wait");
        wait_until_heard(&server, "a");
        guard.unlock().unwrap();
        child.wait_for("had", PATIENCE);
        // The first makes the thread connect.
        if round % GRANTS == 0 {
            child.tell("count");
            let count: u64 = child.wait_for("slept", PATIENCE).parse().unwrap();
            slept.push(count);
        }
    }
    let more = slept[1] - slept[0];
    report("so often the thread of the inbox woke for 100 grants", more);
    // It looks whether somebody reads, at most twice a second, however long this takes.
    let looks = 2 * (now() - begun).as_secs();
    assert!(more < GRANTS / 2 + looks, "{more}");
}

#[test]
fn waiter_that_gives_up_leaves_the_grants_of_others_to_them() {
    let server = RedisServer::start();
    let (holder, waiting) = (Locker::open(&server.url()).unwrap(), patient(&server));
    let guards = ["a", "b", "c"].map(|name| holder.lock(name).unwrap());
    thread::scope(|scope| {
        // The first to wait reads.
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
    // Found by the next waiter, and by the thread, which looks after a second in which nobody read.
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
                let lock = lock.namespace(&format!("space-{}", n % 2)).unwrap();
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
