//! A request comes to the server long after it was given up.

use crosslock::{CancelToken, Result};

use super::*;
use support::{Proxy, RedisServer};

/// The digest of `1`, by which its removal knows it.
#[cfg(feature = "value")]
const SEEN: &str = "356a192b7913b04c54574d18c28d46e6395428ab";

/// Whether a request deletes the value. One that sends a script in full isn't meant.
#[cfg(feature = "value")]
fn deletes(request: &str) -> bool {
    request.contains(SEEN) || request.contains("\r\nDEL\r\n")
}

#[cfg(feature = "value")]
#[test]
fn removal_that_comes_late_removes_no_newer_value() {
    let server = RedisServer::start();
    let detour = Proxy::start(server.addr());
    let url = detour.url();
    let counter = open(&url).mutex(NAME, 0).unwrap();
    // Has the server know the script.
    counter.set(7).unwrap();
    counter.remove().unwrap();
    for newer in [2, 1] {
        counter.set(1).unwrap();
        detour.cut_off_next(deletes);
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

/// A server that knows the scripts, and a way to it that can break.
fn server_with_proxy() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    load_scripts(&server);
    let proxy = Proxy::start(server.addr());
    (server, proxy)
}

/// Two names, of which most tests use the first.
type Names = [String; 2];

/// Has a call end while its question is on its way, which comes to the server then, and gives the names that it was
/// about. `call` returns when the call was to end.
#[track_caller]
fn comes_late(proxy: &Proxy, script: &str, call: impl Fn(&Locker, &Names) -> Instant) -> Names {
    let builder = Locker::builder(&proxy.url()).ttl(3 * PATIENCE);
    let locker = builder.build().expect("open");
    // From here on the server knows the scripts, and the locker hears of grants.
    drop(locker.lock_all(&["x", "y"]).expect("lock_all"));
    let held = held(&open(&proxy.url()));
    let waited = locker.try_lock_for(NAME, millis(50)).expect("try_lock_for");
    assert!(waited.is_none());
    drop(held);
    let names = |round| ["a", "b"].map(|name| format!("{name}{round}"));
    let counts = proxy.pass_late(&digest(script), |round| call(&locker, &names(round)));
    names(counts)
}

/// Cancels a call when its question is held up, and says when.
fn cancelled<T: Send>(
    proxy: &Proxy,
    locker: &Locker,
    call: impl FnOnce(&Locker) -> Result<T> + Send,
) -> Instant {
    let token = CancelToken::new();
    let locker = locker.with_cancel(&token);
    let (outcome, ended) = proxy.end_held(|| call(&locker), || token.cancel());
    assert!(matches!(outcome, Err(Error::Cancelled { .. })));
    ended
}

/// Nobody has the names soon, nobody waits for them, and nobody seems to have died with them.
#[track_caller]
fn assert_left_alone(server: &RedisServer, names: &[String]) {
    let locker = open(&server.url());
    for name in names {
        wait_until("the lock to be left alone", PATIENCE, || {
            let seen = locker.inspect(name).expect("inspect");
            seen.holders.is_empty() && seen.waiters.is_empty()
        });
        let guard = locker.try_lock(name).expect("try_lock");
        assert!(!guard.expect("it is free").was_abandoned());
    }
}

#[test]
fn question_that_comes_late_takes_nothing_of_a_call_that_was_cancelled() {
    let (server, proxy) = server_with_proxy();
    let names = comes_late(&proxy, ACQUIRE, |locker, names| {
        cancelled(&proxy, locker, |locker| locker.lock(&names[0]))
    });
    assert_left_alone(&server, &names);
}
