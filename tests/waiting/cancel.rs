//! Calls that a token ends, in each state that they can be in: they return within 50 ms, and leave nothing.

use crosslock::CancelToken;

use super::*;
use support::RedisServer;

#[track_caller]
fn assert_is_cancelled<T>(outcome: Result<T>) {
    match outcome {
        Err(Error::Cancelled { name, .. }) => assert!(name.starts_with('a'), "{name}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it isn't cancelled"),
    }
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
