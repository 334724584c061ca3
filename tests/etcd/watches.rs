//! Watches that end, and what waits by them.

use std::thread;

use super::*;
use support::{Etcd, Fault};

/// Heartbeats are minutes away.
fn patient(url: &str) -> Locker {
    Locker::builder(url).ttl(LONG).build().expect("open")
}

#[test]
fn waiter_whose_watch_was_cut_watches_again() {
    let server = Etcd::setup().proxies().start();
    let holder = patient(&format!("etcd://{}/", server.own_addr()));
    let waiter = patient(&server.url());
    for fault in [Fault::Refuse, Fault::HalfClose] {
        let guard = held(&holder);
        thread::scope(|scope| {
            let waits = scope.spawn(|| waiter.lock(NAME).map(LockGuard::unlock));
            wait_for_line(&holder, 1);
            let accepted = server.proxy().accepted();
            server.proxy().set(fault);
            wait_until("another connection", PATIENCE, || {
                server.proxy().accepted() > accepted
            });
            server.proxy().set(Fault::None);
            guard.unlock().expect("unlock");
            wait_until("the lock", PATIENCE, || waits.is_finished());
            waits.join().unwrap().expect("lock").expect("unlock");
        });
    }
}

#[test]
fn waiter_sees_what_was_compacted_while_it_had_no_watch() {
    let server = Etcd::setup().proxies().start();
    let holder = patient(&format!("etcd://{}/", server.own_addr()));
    let waiter = patient(&server.url());
    let guard = held(&holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| waiter.lock(NAME).map(LockGuard::unlock));
        wait_for_line(&holder, 1);
        server.proxy().set(Fault::Refuse);
        guard.unlock().expect("unlock");
        (0..3).for_each(|_| server.put("else", ""));
        server.compact();
        server.proxy().set(Fault::None);
        wait_until("the lock", PATIENCE, || waits.is_finished());
        waits.join().unwrap().expect("lock").expect("unlock");
    });
}

#[test]
fn waiter_behind_a_watch_that_became_silent_asks_by_its_heartbeat() {
    let server = Etcd::setup().proxies().start();
    let build = |url: &str| Locker::builder(url).ttl(millis(3_000)).build().unwrap();
    let direct = server.own_addr();
    let holder = build(&format!("etcd://{direct}/"));
    let waiter = build(&format!("etcd://{},{direct}/", server.addr()));
    let guard = held(&holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| waiter.lock(NAME).map(LockGuard::unlock));
        wait_for_line(&holder, 1);
        server.proxy().set(Fault::BlackHole);
        guard.unlock().expect("unlock");
        wait_until("the lock", PATIENCE, || waits.is_finished());
        waits.join().unwrap().expect("lock").expect("unlock");
    });
}

#[test]
fn waiter_at_a_member_without_a_leader_hears_by_another() {
    let cluster = Etcd::setup().proxies().cluster(3);
    let holder = patient(&cluster.member(1).url());
    let waiter = patient(&cluster.url());
    let guard = held(&holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| waiter.lock(NAME).map(LockGuard::unlock));
        wait_for_line(&holder, 1);
        let old = cluster.leader();
        cluster.isolate(0);
        if old == 0 {
            cluster.wait_for_other_leader(old);
        }
        guard.unlock().expect("unlock");
        wait_until("the lock", PATIENCE, || waits.is_finished());
        waits.join().unwrap().expect("lock").expect("unlock");
        cluster.take_back(0);
    });
}
