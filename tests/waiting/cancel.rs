//! Calls that a token ends, in each state that they can be in: they return within 50 ms, and leave nothing.

use std::net::TcpStream;

use crosslock::CancelToken;

use super::*;
use support::RedisServer;

/// How long a call may take to end.
const BOUND: Duration = millis(50);

/// Cancels, and asserts that the call has ended by that in time.
#[track_caller]
fn assert_cancelled<T>(token: &CancelToken, call: &Pending<T>) {
    let watch = Stopwatch::start();
    token.cancel();
    let outcome = call.outcome();
    let took = watch.elapsed();
    assert_is_cancelled(outcome);
    report("cancelled", took);
    watch.assert_took(took, BOUND);
}

#[track_caller]
fn assert_is_cancelled<T>(outcome: Result<T>) {
    match outcome {
        Err(Error::Cancelled { name, .. }) => assert!(name.starts_with('a'), "{name}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it isn't cancelled"),
    }
}

#[test]
fn place_of_a_cancelled_thread_goes_to_the_next_of_its_process() {
    let server = RedisServer::start();
    let (_lock, guard) = holder(&server);
    let token = CancelToken::new();
    let other = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let first = waiting(&other.with_cancel(&token), "a");
    wait_for_line(&server, 1);
    wait_for_inboxes(&server, 1);
    let place = line(&server);
    let next = waiting(&other, "a");
    next.wait_until_asleep();
    assert_cancelled(&token, &first);
    assert_eq!(line(&server), place);
    guard.unlock().unwrap();
    next.result().unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn either_of_two_tokens_ends_a_call() {
    let server = RedisServer::start();
    let (lock, _guard) = holder(&server);
    for which in 0..2 {
        let tokens = [(); 2].map(|()| CancelToken::new());
        let nested = lock.with_cancel(&tokens[0]).with_cancel(&tokens[1]);
        let in_namespace = nested.with_namespace("crosslock").unwrap();
        let call = waiting(&in_namespace, "a");
        call.wait_until_asleep();
        assert_cancelled(&tokens[which], &call);
        assert_is_cancelled(nested.try_lock("a"));
    }
    assert!(lock.try_lock("b").unwrap().is_some());
}

#[test]
fn call_after_the_cancel_asks_nothing() {
    let server = RedisServer::start();
    let token = CancelToken::new();
    let lock = Locker::open(&server.url()).unwrap().with_cancel(&token);
    let held = lock.lock("a").unwrap();
    let semaphore = lock.semaphore("a-permits", 2).unwrap();
    token.cancel();
    server.stop();
    let second = Duration::from_secs(1);
    let outcomes = [
        lock.lock("a").map(Some),
        lock.try_lock("a"),
        lock.try_lock_for("a", second),
        lock.read("a").map(Some),
        lock.lock_all(&["a", "a2"]).map(Some),
        semaphore.acquire().map(Some),
        semaphore.try_acquire(),
    ];
    outcomes.into_iter().for_each(assert_is_cancelled);
    assert_is_cancelled(semaphore.available_permits());
    assert!(held.is_held());
    server.cont();
    held.verify().unwrap();
    held.unlock().unwrap();
}

/// Every call that waits.
fn calls(lock: &Locker) -> Vec<(&'static str, Pending<Option<LockGuard>>)> {
    let hour = Duration::from_secs(3600);
    let semaphore = lock.semaphore("a-permits", 1).unwrap();
    vec![
        ("lock", calling(lock, |lock| lock.lock("a").map(Some))),
        (
            "timed",
            calling(lock, move |lock| lock.try_lock_for("a", hour)),
        ),
        ("read", calling(lock, |lock| lock.read("a").map(Some))),
        ("write", calling(lock, |lock| lock.write("a").map(Some))),
        (
            "all",
            calling(lock, |lock| lock.lock_all(&["a", "a2"]).map(Some)),
        ),
        (
            "permit",
            calling(lock, move |_| semaphore.acquire().map(Some)),
        ),
    ]
}

/// Cancels calls of all kinds of a locker of `url`, which were made after `before`, when `are_there`.
#[track_caller]
fn assert_all_end(lock: Locker, before: impl FnOnce(), are_there: impl FnOnce()) {
    let token = CancelToken::new();
    let lock = lock.with_cancel(&token);
    before();
    let calls = calls(&lock);
    are_there();
    let watch = Stopwatch::start();
    token.cancel();
    for (which, call) in &calls {
        let outcome = call.outcome();
        support::assert_like!(outcome, Err(Error::Cancelled { .. }), "{which}");
    }
    let took = watch.elapsed();
    report("calls of all kinds cancelled", took);
    watch.assert_took(took, BOUND);
}

/// What is taken by `holder` so that none of the calls is served.
fn take_all(holder: &Locker) -> [LockGuard; 2] {
    let semaphore = holder.semaphore("a-permits", 1).unwrap();
    [holder.lock("a").unwrap(), semaphore.acquire().unwrap()]
}

fn moment() {
    thread::sleep(millis(150));
}

#[test]
fn all_calls_end_on_a_server_that_does_not_answer() {
    let server = RedisServer::start();
    let holder = Locker::open(&server.url()).unwrap();
    let lock = Locker::open(&server.url()).unwrap();
    assert_all_end(lock.clone(), || server.stop(), moment);
    server.cont();
    // Nothing of what was asked lasts, although nobody heard the answers.
    for name in ["a", "a2"] {
        let guard = holder.try_lock_for(name, PATIENCE).unwrap();
        guard
            .expect("it is free long before its ttl")
            .unlock()
            .unwrap();
    }
    drop(lock);
}

#[test]
fn all_calls_end_on_a_server_that_stops_while_they_wait() {
    let server = RedisServer::start();
    let holder = Locker::builder(&server.url()).ttl(LONG).build().unwrap();
    let guards = take_all(&holder);
    let lock = Locker::open(&server.url()).unwrap();
    assert_all_end(
        lock.clone(),
        || {},
        || {
            moment();
            server.stop();
            moment();
        },
    );
    server.cont();
    guards.into_iter().for_each(|guard| guard.unlock().unwrap());
    wait_until_nothing_is_left(&server);
    drop(lock);
}

#[test]
fn all_calls_end_while_there_is_no_server() {
    let server = RedisServer::start();
    let lock = Locker::builder(&server.url())
        .outage_timeout(Duration::from_secs(600))
        .build()
        .unwrap();
    assert_all_end(lock, || server.kill(), moment);
}

#[test]
fn all_calls_end_while_they_connect() {
    let server = RedisServer::builder().config("tcp-backlog", "1").start();
    let lock = Locker::builder(&server.url())
        .connect_timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    let mut crowd = Vec::new();
    let hangs = || {
        server.stop();
        // Until no more connections are accepted.
        while let Ok(stream) = TcpStream::connect_timeout(&server.addr(), millis(300)) {
            crowd.push(stream);
            assert!(crowd.len() < 1_000, "the backlog has no end");
        }
    };
    assert_all_end(lock, hangs, moment);
    server.cont();
}
