//! Leases that one process passes on to another, and lockers that a process closes before it exits.

use std::thread;
use std::time::Duration;

use crosslock::{Error, LeaseTicket};

use super::*;
use support::{Child, RedisServer, hear, is_child, now, say, within};

/// Long enough for a child to begin within half of it, on a busy machine too.
const LEASE: Duration = Duration::from_secs(10);

/// Takes "a", passes it on, and exits or waits.
#[test]
fn child_passes_on() {
    if !is_child("passing::child_passes_on") {
        return;
    }
    let guard = locker().lock("a").unwrap();
    say(&format!("holds {}", guard.fencing_token()));
    let ticket = guard.into_ticket().expect("a ticket");
    say(&format!("ticket {}", ticket.to_secret()));
    if hear().as_deref() == Some("exit") {
        std::process::exit(0);
    }
    let lost = locker().adopt(ticket);
    say(&format!("lost {}", matches!(lost, Err(Error::Lost { .. }))));
    hear();
}

/// Adopts "a" by the ticket that it hears, and does what it is told.
#[test]
fn child_adopts() {
    if !is_child("passing::child_adopts") {
        return;
    }
    say("ready");
    let ticket: LeaseTicket = hear().unwrap().parse().unwrap();
    let lock = locker();
    let guard = match lock.adopt(&ticket) {
        Ok(guard) => guard,
        Err(error) => {
            say(&format!("refused {error}"));
            return;
        }
    };
    say(&format!("adopted {}", guard.fencing_token()));
    while let Some(order) = hear() {
        match order.as_str() {
            "verify" => say(&format!("verify {}", guard.verify().is_ok())),
            "unlock" => {
                guard.unlock().unwrap();
                say("unlock");
                return;
            }
            order => panic!("{order:?}"),
        }
    }
}

fn child(entry: &str, url: &str, ttl: Duration) -> Child {
    let millis = ttl.as_millis().to_string();
    Child::spawn(entry, &[(URL, url), (TTL, millis.as_str())])
}

/// A process that adopts, ready to hear its ticket.
fn heir(url: &str, ttl: Duration) -> Child {
    let mut heir = child("passing::child_adopts", url, ttl);
    heir.wait_for("ready", PATIENCE);
    heir
}

fn number(said: &str) -> u64 {
    said.trim().parse().unwrap()
}

/// A process that holds "a", the token, and the ticket.
fn passed_on(url: &str, ttl: Duration) -> (Child, u64, String) {
    let mut holder = child("passing::child_passes_on", url, ttl);
    let token = number(&holder.wait_for("holds", PATIENCE));
    let ticket = holder.wait_for("ticket", PATIENCE);
    (holder, token, ticket.trim().to_owned())
}

#[test]
fn lease_outlives_the_process_that_passed_it_on() {
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let mut heir = heir(&server.url(), LEASE);
    let (mut holder, token, ticket) = passed_on(&server.url(), LEASE);
    holder.tell("exit");
    assert!(holder.wait(PATIENCE).success());
    heir.tell(&ticket);
    assert!(number(&heir.wait_for("adopted", PATIENCE)) > token);
    assert!(lock.try_lock("a").unwrap().is_none());
    heir.tell("verify");
    assert_eq!(heir.wait_for("verify", PATIENCE).trim(), "true");
    heir.tell("unlock");
    heir.wait_for("unlock", PATIENCE);
    assert!(!lock.lock("a").unwrap().was_abandoned());
}

#[test]
fn lease_goes_on_while_its_first_process_waits_and_after_it_is_killed() {
    const SHORT: Duration = Duration::from_millis(1_500);
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let mut heir = heir(&server.url(), SHORT);
    let (mut holder, _, ticket) = passed_on(&server.url(), LEASE);
    heir.tell(&ticket);
    heir.wait_for("adopted", PATIENCE);
    holder.tell("adopt");
    assert_eq!(holder.wait_for("lost", PATIENCE).trim(), "true");
    // The heir renews, and the first process ends nothing.
    thread::sleep(SHORT);
    holder.kill();
    thread::sleep(SHORT);
    heir.tell("verify");
    assert_eq!(heir.wait_for("verify", PATIENCE).trim(), "true");
    assert!(lock.try_lock("a").unwrap().is_none());
    heir.kill();
    let next = lock.try_lock_for("a", PATIENCE).unwrap();
    assert!(next.expect("its ttl is over").was_abandoned());
}

#[test]
fn process_that_is_killed_before_it_adopts_leaves_the_lock_to_its_ttl() {
    const SHORT: Duration = Duration::from_secs(2);
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let mut heir = heir(&server.url(), SHORT);
    let began = now();
    let (mut holder, _, ticket) = passed_on(&server.url(), SHORT);
    holder.tell("exit");
    holder.wait(PATIENCE);
    heir.kill();
    let next = lock.try_lock_for("a", PATIENCE).unwrap();
    assert!(next.expect("its ttl is over").was_abandoned());
    assert!(now() - began >= SHORT);
    let late = lock.adopt(ticket.parse::<LeaseTicket>().unwrap());
    assert!(matches!(late, Err(Error::Lost { .. })));
}

#[test]
fn of_two_processes_with_a_ticket_one_has_the_lease() {
    let server = RedisServer::start();
    let mut heirs = [(); 2].map(|()| heir(&server.url(), LEASE));
    let (_holder, _, ticket) = passed_on(&server.url(), LEASE);
    heirs.iter_mut().for_each(|heir| heir.tell(&ticket));
    let mut adopted = 0;
    for heir in &mut heirs {
        support::wait_until("an answer", PATIENCE, || {
            heir.has_said("adopted") || heir.has_said("refused")
        });
        adopted += u32::from(heir.has_said("adopted"));
    }
    assert_eq!(adopted, 1);
}

/// Has threads that lock in a loop, closes when it is told, and exits at once.
#[test]
fn child_closes() {
    if !is_child("passing::child_closes") {
        return;
    }
    let lock = locker();
    let kept: Vec<_> = (0..20)
        .map(|n| lock.lock(&format!("kept-{n}")).unwrap())
        .collect();
    for n in 0..6 {
        let lock = lock.clone();
        let name = format!("loop-{}", n % 3);
        thread::spawn(move || while lock.lock(&name).is_ok() {});
    }
    say("works");
    hear();
    within(Duration::from_millis(500), || lock.close());
    assert!(kept.iter().all(|guard| !guard.is_held()));
    std::process::exit(0);
}

#[test]
fn process_that_closes_may_exit_at_once() {
    let server = RedisServer::start();
    let lock = Locker::open(&server.url()).unwrap();
    let day = Duration::from_secs(24 * 3600);
    for _ in 0..5 {
        let mut closes = child("passing::child_closes", &server.url(), day);
        closes.wait_for("works", PATIENCE);
        closes.tell("close");
        assert!(closes.wait(PATIENCE).success());
        let left = server.keys();
        let counters = left.iter().filter(|key| key.ends_with(":fence")).count();
        assert_eq!(counters, left.len(), "{left:?}");
        let names = (0..20).map(|n| format!("kept-{n}"));
        for name in names.chain((0..3).map(|n| format!("loop-{n}"))) {
            let guard = lock.try_lock(&name).unwrap().expect("it was released");
            assert!(!guard.was_abandoned());
        }
    }
}
