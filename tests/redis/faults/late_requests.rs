//! A request comes to the server long after it was given up.

use crosslock::CancelToken;

use super::*;
use support::{Proxy, RedisServer};

#[cfg(feature = "value")]
#[test]
fn removal_that_comes_late_removes_no_newer_value() {
    /// The digest of `1`, by which its removal knows it.
    const SEEN: &str = "356a192b7913b04c54574d18c28d46e6395428ab";
    let server = RedisServer::start();
    let detour = Proxy::start(server.addr());
    let url = detour.url();
    let counter = open(&url).mutex(NAME, 0).unwrap();
    // Has the server know the script.
    counter.set(7).unwrap();
    counter.remove().unwrap();
    for newer in [2, 1] {
        counter.set(1).unwrap();
        // One that sends a script in full isn't meant.
        detour.cut_off_next(|request| request.contains(SEEN) || request.contains("\r\nDEL\r\n"));
        counter.remove().unwrap();
        detour.await_held();
        assert_eq!(counter.peek().unwrap(), 0);
        counter.set(newer).unwrap();
        detour.deliver();
        assert_eq!(counter.peek().unwrap(), newer);
        counter.remove().unwrap();
    }
    assert_eq!(counter.peek().unwrap(), 0);
}

#[test]
fn question_that_comes_late_takes_nothing_of_a_call_that_was_cancelled() {
    let server = RedisServer::start();
    load_scripts(&server);
    let proxy = Proxy::start(server.addr());
    let builder = Locker::builder(&proxy.url()).ttl(3 * PATIENCE);
    let locker = builder.build().expect("open");
    // From here on the locker hears of grants.
    let held = held(&open(&proxy.url()));
    assert!(locker.try_lock_for(NAME, millis(50)).unwrap().is_none());
    drop(held);
    let name = |round| format!("late-{round}");
    let counts = proxy.pass_late(&digest(ACQUIRE), |round| {
        let token = CancelToken::new();
        let cancelled = locker.with_cancel(&token);
        let (outcome, ended) = proxy.end_held(|| cancelled.lock(&name(round)), || token.cancel());
        assert!(matches!(outcome, Err(Error::Cancelled { .. })));
        ended
    });
    // Nobody has it soon, nobody waits for it, and nobody seems to have died with it.
    let locker = open(&server.url());
    wait_until("the lock to be left alone", PATIENCE, || {
        let seen = locker.inspect(&name(counts)).expect("inspect");
        seen.holders.is_empty() && seen.waiters.is_empty()
    });
    let guard = locker.try_lock(&name(counts)).expect("try_lock");
    assert!(!guard.expect("it is free").was_abandoned());
}
