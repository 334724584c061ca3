//! Many threads of one process that wait when the server goes.

use std::time::Instant;

use super::watch::{holder, wait_for_inboxes};
use super::*;
use support::{RedisServer, eventually};

const MANY: usize = 12;

#[test]
fn waiters_on_a_silent_server_fail_at_about_the_same_time() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = Locker::builder(&server.url())
        .ttl(millis(1_500))
        .io_timeout(millis(1_000))
        .outage_timeout(millis(1_000))
        .build()
        .unwrap();
    let (tell, ended) = mpsc::channel();
    let threads: Vec<_> = (0..MANY)
        .map(|_| {
            let (lock, tell) = (lock.clone(), tell.clone());
            thread::spawn(move || {
                let error = lock.lock("a").unwrap_err();
                assert!(matches!(error, Error::Unavailable { .. }), "{error}");
                tell.send(Instant::now()).unwrap();
            })
        })
        .collect();
    wait_for_inboxes(&server, 1);
    let watch = Stopwatch::start();
    server.stop();
    let first = ended.recv_timeout(PATIENCE).unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    let last = ended.try_iter().max().unwrap();
    // One after the other they would take an answer's time each.
    watch.assert_took(last - first, millis(3_000));
    server.cont();
    drop(guard);
}

#[test]
fn dead_server_is_unavailable_to_each_of_many_timed_calls() {
    for _ in 0..5 {
        let server = RedisServer::start();
        let lock = Locker::open(&server.url()).unwrap();
        server.kill();
        let end = Instant::now() + millis(400);
        let calls: Vec<_> = (0..30)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || lock.try_lock_until("a", end))
            })
            .collect();
        for call in calls {
            let outcome = call.join().unwrap();
            assert!(
                matches!(outcome, Err(Error::Unavailable { .. })),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn inboxes_that_are_killed_all_the_time_cause_no_storm_of_commands() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = Locker::open(&server.url()).unwrap();
    let waiter = waiting(&lock, "a");
    wait_for_inboxes(&server, 1);
    let before = server.command_calls("evalsha");
    let begun = Instant::now();
    eventually(millis(2_000), || {
        server.query::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        begun.elapsed() >= millis(2_000)
    });
    let asked = server.command_calls("evalsha") - before;
    let time = begun.elapsed();
    assert!(
        u128::from(asked) * 1_000 < 75 * time.as_millis(),
        "{asked} in {time:?}"
    );
    guard.unlock().unwrap();
    waiter.result().unlock().unwrap();
}
