//! Several names at once, and processes that are killed and stopped.

use std::thread;

use super::*;
use support::puppet::Puppet;
use support::{Child, RedisServer};

const LEASE: Duration = millis(600);

#[test]
fn killed_waiter_keeps_no_name_for_longer_than_its_ttl() {
    let server = RedisServer::start();
    let mut processes = Puppet::start_many(3, &server.url(), LEASE);
    processes[0].tell("write n");
    processes[0].holding();
    // It has the other two, while it waits for the third.
    processes[1].tell("all a n z");
    wait_for_queue(&server, 1);
    assert!(server.get("{crosslock:a}").is_some());
    processes[1].kill();
    let watch = Stopwatch::start();
    processes[2].tell("all z a");
    processes[2].holding();
    watch.assert_within(LEASE);
    processes[2].unlock();
    processes[0].unlock();
    assert_nothing_left(&server);
}

#[test]
fn stopped_waiter_keeps_nobody_for_longer_than_its_ttl() {
    let server = RedisServer::start();
    let [mut holder, mut stopped, mut next] = [(); 3].map(|()| Puppet::start(&server.url(), LEASE));
    holder.tell("write n");
    holder.holding();
    stopped.tell("all a n");
    wait_for_queue(&server, 1);
    stopped.stop();
    holder.unlock();
    let watch = Stopwatch::start();
    next.tell("all n b a");
    next.holding();
    watch.assert_within(LEASE);
    next.unlock();
    stopped.cont();
    // It asks anew, and has them.
    stopped.holding();
    stopped.unlock();
    assert_nothing_left(&server);
}

#[test]
fn overlapping_sets_make_progress_while_processes_are_killed_and_stopped() {
    let server = RedisServer::start();
    let (url, ttl) = (server.url(), LEASE.as_millis().to_string());
    let start = || {
        let mut child = Child::spawn("locks sets", &[(URL, &url), (TTL, &ttl)]);
        child.wait_for("ready", PATIENCE);
        child.tell("1000000");
        child
    };
    let mut children: Vec<_> = (0..6).map(|_| start()).collect();
    for turn in 0..12 {
        thread::sleep(millis(fastrand::u64(50..250)));
        let one = fastrand::usize(..children.len());
        if turn % 2 == 0 {
            children[one].kill();
            children[one] = start();
        } else {
            children[one].stop();
            thread::sleep(LEASE + millis(100));
            children[one].cont();
        }
    }
    // All that live go on: nobody waits for anybody who waits for it.
    let before: Vec<_> = tokens(&server);
    wait_until("progress with each name", PATIENCE, || {
        let now = tokens(&server);
        before.iter().zip(&now).all(|(before, now)| before < now)
    });
    for child in &mut children {
        child.kill();
    }
    let watch = Stopwatch::start();
    open(&server)
        .lock_all(&["a", "b", "c", "d"])
        .unwrap()
        .unlock()
        .unwrap();
    watch.assert_within(LEASE);
}

fn tokens(server: &RedisServer) -> Vec<u64> {
    let tokens = ["a", "b", "c", "d"].map(|name| server.get(name));
    let tokens = tokens
        .into_iter()
        .map(|token| token.map_or(0, |token| token.parse().unwrap()));
    tokens.collect()
}
