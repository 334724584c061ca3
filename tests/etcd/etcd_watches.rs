//! Watches that end, and what waits by them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
        assert_served(&holder, &waiter, |guard| {
            let accepted = server.proxy().accepted();
            server.proxy().set(fault);
            wait_until("another connection", PATIENCE, || {
                server.proxy().accepted() > accepted
            });
            server.proxy().set(Fault::None);
            guard.unlock().expect("unlock");
        });
    }
}

#[test]
fn waiter_sees_what_was_compacted_while_it_had_no_watch() {
    let server = Etcd::setup().proxies().start();
    let holder = patient(&format!("etcd://{}/", server.own_addr()));
    let waiter = patient(&server.url());
    assert_served(&holder, &waiter, |guard| {
        server.proxy().set(Fault::Refuse);
        guard.unlock().expect("unlock");
        (0..3).for_each(|_| server.put("else", ""));
        server.compact();
        server.proxy().set(Fault::None);
    });
}

#[test]
fn waiter_behind_a_watch_that_became_silent_asks_by_its_heartbeat() {
    let server = Etcd::setup().proxies().start();
    let build = |url: &str| Locker::builder(url).ttl(millis(3_000)).build().unwrap();
    let direct = server.own_addr();
    let holder = build(&format!("etcd://{direct}/"));
    let url = format!("etcd://{},{direct}/", server.addr());
    let waiter = server.proxy().asked_first_by(|| build(&url));
    assert_served(&holder, &waiter, |guard| {
        server.proxy().set(Fault::BlackHole);
        guard.unlock().expect("unlock");
    });
}

/// Its keepalives have found that its host hangs, and go to another since then.
#[test]
fn waiter_whose_host_hangs_for_long_hears_by_another() {
    let server = Etcd::setup().proxies().start();
    let ttl = millis(3_000);
    let direct = server.own_addr();
    let holder = open(&format!("etcd://{direct}/"));
    let url = format!("etcd://{},{direct}/", server.addr());
    let builder = Locker::builder(&url).ttl(ttl).io_timeout(millis(300));
    let waiter = server.proxy();
    let waiter = waiter.asked_first_by(|| builder.clone().build().expect("open"));
    assert_served(&holder, &waiter, |guard| {
        server.proxy().set(Fault::BlackHole);
        thread::sleep(ttl);
        guard.unlock().expect("unlock");
    });
}

#[test]
fn waiter_at_a_member_without_a_leader_hears_by_another() {
    let cluster = Etcd::setup().proxies().cluster(3);
    let holder = patient(&cluster.member(1).url());
    let first = cluster.member(0).proxy();
    let waiter = first.asked_first_by(|| patient(&cluster.url()));
    assert_served(&holder, &waiter, |guard| {
        let old = cluster.leader();
        cluster.isolate(0);
        if old == 0 {
            cluster.wait_for_other_leader(old);
        }
        guard.unlock().expect("unlock");
    });
    cluster.take_back(0);
}

/// A server tells a watch that is to begin in the past of nothing for up to 100 ms, and what is past is decided by all
/// that anybody writes.
#[test]
fn waiter_that_has_just_come_hears_as_soon_as_one_that_waits_for_long() {
    const ROUNDS: u32 = 16;
    let server = Etcd::start();
    let (holder, waiter) = (patient(&server.url()), patient(&server.url()));
    let ends = AtomicBool::new(false);
    let [mut soon, mut late] = [Duration::ZERO; 2];
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Relaxed) {
                server.put("else", "");
            }
        });
        for _ in 0..ROUNDS {
            soon += handed_off(&holder, &waiter, Duration::ZERO);
            late += handed_off(&holder, &waiter, millis(200));
        }
        ends.store(true, Relaxed);
    });
    assert!(
        soon <= 2 * late + ROUNDS * millis(20),
        "{soon:?} for those that have just come, {late:?} for others"
    );
}

/// How long it takes from a release until the lock is had by one who has waited for so long.
fn handed_off(holder: &Locker, waiter: &Locker, waited: Duration) -> Duration {
    let guard = held(holder);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let guard = waiter.lock(NAME).expect("lock");
            (Instant::now(), guard)
        });
        wait_for_line(holder, 1);
        thread::sleep(waited);
        guard.unlock().expect("unlock");
        let released = Instant::now();
        let (had, guard) = waits.join().unwrap();
        guard.unlock().expect("unlock");
        had.saturating_duration_since(released)
    })
}
