//! A lease that is broken before its waiter has heard of its grant.

use std::thread;

use super::*;
use support::{Fault, Proxy, RedisServer, Stopwatch, wait_until};

#[test]
fn waiter_of_a_broken_grant_has_the_free_lock_at_once() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let (holder, deaf) = (patient(&server.url()), patient(&proxy.url()));
    let held = held(&holder, "n");
    let first = held.fencing_token();
    let waiters = [(); 2].map(|()| {
        let locker = deaf.clone();
        thread::spawn(move || {
            let guard = locker.lock("n").expect("the lock");
            let token = guard.fencing_token();
            guard.unlock().expect("it was held");
            token
        })
    });
    let seen = || holder.inspect("n").expect("inspect");
    wait_until("one to wait", PATIENCE, || seen().waiters.len() == 1);
    // The lock is handed off to a process that hears of nothing, and taken from it.
    proxy.set(Fault::BlackHole);
    drop(held);
    let broken = holder.break_lock("n").expect("break");
    assert_eq!(broken.len(), 1, "it was handed off");
    // A proxy that is slow would pass the grant afterwards.
    proxy.await_swallowed();
    proxy.set(Fault::None);
    let watch = Stopwatch::start();
    let tokens = waiters.map(|waiter| waiter.join().unwrap());
    // The lease would have lasted for far longer.
    watch.assert_within(PATIENCE);
    assert!(tokens.iter().all(|token| *token > first) && tokens[0] != tokens[1]);
    let left = seen();
    assert!(left.holders.is_empty() && left.waiters.is_empty());
}
