//! A value was stored or not, and the answer that says so doesn't arrive.

use std::fs;
use std::sync::mpsc;
use std::thread;

use crosslock::{Error, Mutex, MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use rustix::thread::gettid;

use super::*;
use support::scripts::{ACQUIRE, DOWNGRADE, RELEASE as RELEASE_SCRIPT, RENEW, digest, whole};
use support::{Fault, Proxy, RedisServer};

/// What a release may take.
const RELEASE: Duration = millis(500);
pub(crate) const KEYS: [&str; 7] = [
    LOCK,
    FENCE,
    QUEUE,
    "{crosslock:n}:waiters",
    "{crosslock:n}:read_queue",
    "{crosslock:n}:holders",
    VALUE,
];

/// A server that knows the scripts, and a way to it that can break.
pub(crate) fn server_with_proxy() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    for code in [ACQUIRE, RENEW, RELEASE_SCRIPT, DOWNGRADE] {
        server.query::<()>(&["SCRIPT", "LOAD", &whole(code)]);
    }
    let proxy = Proxy::start(server.addr());
    (server, proxy)
}

fn counter(url: &str) -> Mutex<u64> {
    Locker::open(url).unwrap().mutex(NAME, 0).unwrap()
}

/// Runs a script as a request does that was long on its way.
fn late(server: &RedisServer, code: &str, arguments: &[&str]) -> i64 {
    let digest = digest(code);
    let words = [&["EVALSHA", &digest, "7"], &KEYS[..], arguments].concat();
    server.query(&words)
}

#[test]
fn value_comes_although_the_reply_that_brings_it_is_lost() {
    let (server, proxy) = server_with_proxy();
    *counter(&server.url()).lock().unwrap() = 5;
    let counter = counter(&proxy.url());
    proxy.lose_next_reply(&digest(ACQUIRE), true);
    let mut guard = counter.lock().unwrap();
    assert_eq!((*guard, proxy.lost_replies()), (5, 1));
    *guard += 1;
    MutexGuard::unlock(guard).unwrap();
    assert_eq!(server.get(VALUE).as_deref(), Some("6"));
    assert_nothing_left(&server);
}

#[test]
fn unlock_whose_reply_is_lost_is_ok_and_stored_once() {
    let (server, proxy) = server_with_proxy();
    for (then_close, value) in [(true, "1"), (false, "2")] {
        let mut guard = counter(&proxy.url()).lock().unwrap();
        *guard += 1;
        proxy.lose_next_reply(&digest(RELEASE_SCRIPT), then_close);
        within(RELEASE, || MutexGuard::unlock(guard)).unwrap();
        assert_eq!(server.get(VALUE).as_deref(), Some(value));
        assert_nothing_left(&server);
    }
    assert_eq!(proxy.lost_replies(), 2);
}

#[test]
fn unlock_none_of_whose_replies_arrives_is_no_success_and_stored_once() {
    let (server, proxy) = server_with_proxy();
    for then_close in [true, false] {
        let mut guard = counter(&proxy.url()).lock().unwrap();
        *guard += 1;
        let value = guard.to_string();
        proxy.set(Fault::LoseReply { then_close });
        let error = within(RELEASE, || MutexGuard::unlock(guard)).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert_eq!(server.get(VALUE), Some(value));
        proxy.set(Fault::None);
        assert_nothing_left(&server);
    }
}

#[test]
fn unlock_that_does_not_arrive_is_no_success_and_stores_nothing() {
    let (server, proxy) = server_with_proxy();
    let locker = Locker::builder(&proxy.url()).ttl(millis(600));
    let counter = locker.build().unwrap().mutex(NAME, 0).unwrap();
    for fault in [Fault::BlackHole, Fault::Refuse] {
        let mut guard = counter.lock().unwrap();
        *guard += 1;
        proxy.set(fault);
        let error = within(RELEASE, || MutexGuard::unlock(guard)).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        wait_until("the lease to end", PATIENCE, || server.get(LOCK).is_none());
        proxy.set(Fault::None);
        assert_eq!(server.get(VALUE), None);
    }
}

#[test]
fn guard_that_was_lost_here_stores_nothing_although_the_server_keeps_its_lease() {
    let (server, proxy) = server_with_proxy();
    let builder = Locker::builder(&proxy.url()).ttl(Duration::from_secs(1));
    let locker = builder.renew_every(millis(200)).build().unwrap();
    let mut guard = locker.mutex(NAME, 0u64).unwrap().lock().unwrap();
    *guard = 1;
    // Renewals arrive, and nobody here learns of it.
    proxy.set(Fault::LoseReply { then_close: true });
    let lost = MutexGuard::lease(&guard).lost();
    lost.recv_timeout(PATIENCE).unwrap();
    proxy.set(Fault::None);
    assert!(server.get(LOCK).is_some());
    let error = MutexGuard::unlock(guard).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert_eq!(server.get(VALUE), None);
    assert_nothing_left(&server);
}

/// While the first reply to an unlock that stores 1 is swallowed, a waiter takes the lock and adds 10; then the unlock
/// is repeated. Gives what it said.
fn unlock_with_a_waiter_in_between(ttl: Duration) -> crosslock::Result<()> {
    let (server, proxy) = server_with_proxy();
    let locker = Locker::builder(&proxy.url()).ttl(ttl).build().unwrap();
    let mut guard = locker.mutex(NAME, 0u64).unwrap().lock().unwrap();
    *guard = 1;
    let waiting = counter(&server.url());
    let outcome = thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut guard = waiting.lock().unwrap();
            assert!(!MutexGuard::lease(&guard).was_abandoned());
            *guard += 10;
            guard
        });
        wait_for_queue(&server, 1);
        proxy.lose_next_reply(&digest(RELEASE_SCRIPT), false);
        let unlock = scope.spawn(|| within(RELEASE, || MutexGuard::unlock(guard)));
        let next = waiter.join().unwrap();
        let outcome = unlock.join().unwrap();
        MutexGuard::lease(&next).verify().unwrap();
        MutexGuard::unlock(next).unwrap();
        outcome
    });
    assert_eq!(server.get(VALUE).as_deref(), Some("11"));
    assert_eq!(proxy.lost_replies(), 1);
    assert_nothing_left(&server);
    outcome
}

#[test]
fn repeated_unlock_takes_nothing_from_the_next_holder() {
    // The second also comes after the end of the lease.
    for ttl in [Duration::from_secs(10), millis(150)] {
        let error = unlock_with_a_waiter_in_between(ttl).unwrap_err();
        // It can't be told from one that was never stored.
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    }
}

#[test]
fn downgrade_whose_reply_is_lost_reads_what_it_stored() {
    let (server, proxy) = server_with_proxy();
    for (then_close, value) in [(true, 1), (false, 2)] {
        let config = Locker::open(&proxy.url()).unwrap().rwlock(NAME, 0u64);
        let mut writing = config.unwrap().write().unwrap();
        *writing += 1;
        proxy.lose_next_reply(&digest(DOWNGRADE), then_close);
        let reading = within(RELEASE, || RwLockWriteGuard::downgrade(writing)).unwrap();
        assert_eq!(*reading, value);
        assert_eq!(server.get(VALUE), Some(value.to_string()));
        RwLockReadGuard::lease(&reading).verify().unwrap();
        let other = open(&server);
        assert!(other.try_write(NAME).unwrap().is_none());
        assert!(
            other.read(NAME).unwrap().fencing_token()
                > RwLockReadGuard::lease(&reading).fencing_token()
        );
        RwLockReadGuard::unlock(reading).unwrap();
        assert_nothing_left(&server);
    }
    assert_eq!(proxy.lost_replies(), 2);
}

#[test]
fn downgrade_none_of_whose_replies_arrives_is_released() {
    // It outlasts our patience: only a release frees the lock.
    const LEASE: Duration = Duration::from_secs(300);
    let (server, proxy) = server_with_proxy();
    for then_close in [true, false] {
        let locker = Locker::builder(&proxy.url()).ttl(LEASE).build().unwrap();
        let config = locker.rwlock(NAME, 0u64).unwrap();
        let mut writing = config.write().unwrap();
        *writing += 1;
        let value = writing.to_string();
        proxy.set(Fault::LoseReply { then_close });
        let outcome = within(RELEASE, || RwLockWriteGuard::downgrade(writing));
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        proxy.set(Fault::None);
        assert_nothing_left(&server);
        assert_eq!(server.get(VALUE), Some(value));
    }
}

#[test]
fn late_duplicate_of_a_unlock_stores_nothing() {
    let (server, _proxy) = server_with_proxy();
    let counter = counter(&server.url());
    let mut guard = counter.lock().unwrap();
    let owner = server.get(LOCK).unwrap();
    let released = (MutexGuard::lease(&guard).fencing_token() + 1).to_string();
    *guard = 1;
    MutexGuard::unlock(guard).unwrap();
    let duplicate = || late(&server, RELEASE_SCRIPT, &[&owner, &released, "x", "1"]);
    // It says what it said, as long as nobody came.
    assert_eq!(duplicate(), 1);
    let mut next = counter.lock().unwrap();
    *next = 2;
    assert_ne!(duplicate(), 1);
    MutexGuard::lease(&next).verify().unwrap();
    MutexGuard::unlock(next).unwrap();
    assert_ne!(duplicate(), 1);
    assert_eq!(counter.peek().unwrap(), 2);
    let reading = open(&server).read(NAME).unwrap();
    assert_ne!(duplicate(), 1);
    reading.verify().unwrap();
    assert_eq!(counter.peek().unwrap(), 2);
}

#[test]
fn late_duplicate_of_a_downgrade_stores_nothing() {
    let (server, _proxy) = server_with_proxy();
    let config = open(&server).rwlock(NAME, 0u64).unwrap();
    let mut writing = config.write().unwrap();
    let owner = server.get(LOCK).unwrap();
    let released = (RwLockWriteGuard::lease(&writing).fencing_token() + 1).to_string();
    *writing = 1;
    let reading = RwLockWriteGuard::downgrade(writing).unwrap();
    let duplicate = || late(&server, DOWNGRADE, &[&owner, &released, "10000", "7"]);
    assert!(duplicate() > 0);
    assert_eq!(config.peek().unwrap(), 1);
    RwLockReadGuard::unlock(reading).unwrap();
    assert_eq!(duplicate(), 0);
    let mut next = config.write().unwrap();
    *next = 2;
    assert_eq!(duplicate(), 0);
    RwLockWriteGuard::unlock(next).unwrap();
    assert_eq!(config.peek().unwrap(), 2);
    assert_nothing_left(&server);
}

/// Commits 1 while another thread of the same locker waits, which then sees `seen`; gives the first one's token, and
/// the guard of the next.
pub(crate) fn in_turn(
    counter: &Mutex<u64>,
    seen: u64,
    unlock: impl FnOnce(MutexGuard<u64>),
) -> (u64, MutexGuard<u64>) {
    let mut guard = counter.lock().unwrap();
    let (identify, identity) = mpsc::channel();
    let token = MutexGuard::lease(&guard).fencing_token();
    *guard = 1;
    thread::scope(|scope| {
        let next = scope.spawn(move || {
            identify.send(gettid()).unwrap();
            counter.lock().unwrap()
        });
        let thread = identity.recv().unwrap().as_raw_nonzero();
        wait_until("a thread to wait", PATIENCE, || {
            let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
            stat.is_ok_and(|stat| stat.contains(") S "))
        });
        unlock(guard);
        let next = next.join().unwrap();
        assert_eq!(*next, seen);
        (token, next)
    })
}

/// A locker whose threads hand the lease over for as long as the tests take.
pub(crate) fn generous(url: &str) -> Mutex<u64> {
    let builder = Locker::builder(url).hand_over(PATIENCE).ttl(PATIENCE);
    builder.build().unwrap().mutex(NAME, 0).unwrap()
}

#[test]
fn unlock_to_the_next_thread_hands_over_what_it_stored() {
    let (server, _proxy) = server_with_proxy();
    let counter = generous(&server.url());
    let (token, next) = in_turn(&counter, 1, |guard| MutexGuard::unlock(guard).unwrap());
    assert_eq!(MutexGuard::lease(&next).fencing_token(), token + 1);
    assert_eq!(server.get(VALUE).as_deref(), Some("1"));
}

/// While the owner stays the same a late copy of the first one's command would undo what the next one stores.
#[test]
fn unlock_to_the_next_thread_whose_reply_is_lost_is_stored_and_ends_the_lease() {
    let (server, proxy) = server_with_proxy();
    let counter = generous(&proxy.url());
    let mut owner = String::new();
    let (token, mut next) = in_turn(&counter, 1, |guard| {
        owner = server.get(LOCK).unwrap();
        proxy.lose_next_reply(&digest(RENEW), true);
        MutexGuard::unlock(guard).unwrap();
    });
    assert_eq!(proxy.lost_replies(), 1);
    assert!(MutexGuard::lease(&next).fencing_token() > token + 1);
    *next += 1;
    MutexGuard::unlock(next).unwrap();
    assert_eq!(late(&server, RENEW, &[&owner, "30000", "x", "1"]), 0);
    assert_eq!(server.get(VALUE).as_deref(), Some("2"));
    assert_nothing_left(&server);
}
