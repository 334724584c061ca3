//! The server has granted or renewed a lock, and its answer doesn't arrive.

use std::thread;
use std::time::Instant;

use crosslock::{Error, Locker, LostReason};

use super::*;
use support::{Fault, Proxy, RedisServer, wait_until};

/// A server that knows the scripts, and a way to it that can break.
pub(crate) fn server_with_proxy() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    load_scripts(&server);
    let proxy = Proxy::start(server.addr());
    (server, proxy)
}

/// A lock whose last holder never released it.
fn abandon(server: &RedisServer) -> u64 {
    let guard = held(&open(&server.url()));
    let token = guard.fencing_token();
    server.query::<()>(&["DEL", LOCK]);
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    token
}

// Acquire

fn acquire_with_a_lost_reply(then_close: bool, abandoned: bool) {
    let (server, proxy) = server_with_proxy();
    let before = if abandoned { abandon(&server) } else { 0 };
    let locker = Locker::builder(&proxy.url())
        .io_timeout(millis(150))
        .build()
        .unwrap();
    proxy.lose_next_reply(&digest(ACQUIRE), then_close);
    let guard = locker.lock(NAME).unwrap();
    assert_eq!(proxy.lost_replies(), 1);
    assert!(guard.is_held());
    assert!(guard.fencing_token() > before);
    assert_eq!(guard.was_abandoned(), abandoned);
    assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
    guard.verify().unwrap();
    assert!(open(&server.url()).try_lock(NAME).unwrap().is_none());
    assert_every_key_expires(&server);

    guard.unlock().unwrap();
    assert_released(&server);
    let next = held(&locker);
    assert!(!next.was_abandoned());
    drop((next, locker));
    assert_released(&server);
    assert_no_clients(&server);
}

#[test]
fn lock_whose_reply_is_lost_is_taken_once() {
    acquire_with_a_lost_reply(true, false);
}

#[test]
fn lock_whose_reply_is_swallowed_is_taken_once() {
    acquire_with_a_lost_reply(false, false);
}

#[test]
fn abandonment_is_told_although_the_reply_was_lost() {
    acquire_with_a_lost_reply(true, true);
}

#[test]
fn abandonment_is_told_although_the_reply_was_swallowed() {
    acquire_with_a_lost_reply(false, true);
}

#[test]
fn lock_whose_first_script_is_sent_in_full_survives_a_lost_reply() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = open(&proxy.url());
    proxy.lose_next_reply("EVAL\r\n", true);
    let guard = locker.lock(NAME).unwrap();
    assert_eq!(proxy.lost_replies(), 1);
    assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
    guard.unlock().unwrap();
    assert_released(&server);
}

#[test]
fn single_attempt_whose_reply_is_swallowed_is_repeated_on_another_connection() {
    let (server, proxy) = server_with_proxy();
    let locker = Locker::builder(&proxy.url())
        .io_timeout(millis(150))
        .build()
        .unwrap();
    proxy.lose_next_reply(&digest(ACQUIRE), false);
    let guard = within(millis(300), || held(&locker));
    assert_eq!(proxy.lost_replies(), 1);
    assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
    guard.unlock().unwrap();
    assert_released(&server);
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn single_attempt_whose_connection_is_closed_is_repeated_on_another() {
    let (server, proxy) = server_with_proxy();
    let (locker, other) = (open(&proxy.url()), open(&proxy.url()));
    proxy.lose_next_reply(&digest(ACQUIRE), true);
    let guard = held(&locker);
    proxy.lose_next_reply(&digest(RENEW), true);
    guard.verify().unwrap();
    proxy.lose_next_reply(&digest(ACQUIRE), true);
    assert!(other.try_lock(NAME).unwrap().is_none());
    assert_eq!(proxy.lost_replies(), 3);
    guard.unlock().unwrap();
    assert_released(&server);
    drop((locker, other));
    assert_no_clients(&server);
}

#[test]
fn try_lock_whose_replies_are_all_lost_leaves_nothing() {
    let (server, proxy) = server_with_proxy();
    for then_close in [true, false] {
        let locker = Locker::builder(&proxy.url())
            .io_timeout(millis(100))
            .build()
            .unwrap();
        proxy.set(Fault::LoseReply { then_close });
        let error = within(millis(300), || locker.try_lock(NAME)).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains("\"n\""), "{error}");
        // Giving up is executed as well, though nobody learns of it.
        wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
        assert_released(&server);
        proxy.set(Fault::None);
        assert_works(&locker);
    }
    assert_no_clients(&server);
}

#[test]
fn lock_whose_reply_is_not_understood_is_given_back() {
    let (server, proxy) = server_with_proxy();
    let locker = Locker::builder(&proxy.url());
    let locker = locker.ttl(millis(600_000)).build().unwrap();
    for words in ["+OK\r\n", "*0\r\n", ":-7\r\n", "$-1\r\n", "what?\r\n"] {
        proxy.replace_next_reply(&digest(ACQUIRE), words);
        let error = locker.try_lock(NAME).unwrap_err();
        assert!(matches!(error, Error::Engine { .. }), "{words:?}: {error}");
        wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
        assert_released(&server);
    }
    assert_works(&locker);
}

#[test]
fn abandonment_is_told_although_the_one_before_gave_up() {
    let (server, proxy) = server_with_proxy();
    abandon(&server);
    let locker = Locker::builder(&proxy.url())
        .io_timeout(millis(150))
        .build()
        .unwrap();
    proxy.set(Fault::LoseReply { then_close: false });
    locker.try_lock(NAME).unwrap_err();
    wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
    proxy.set(Fault::None);
    assert!(held(&locker).was_abandoned(), "nobody was told of it yet");
    assert!(!held(&locker).was_abandoned(), "it is told once");
}

#[test]
fn waiter_whose_reply_is_lost_gets_the_lock_once() {
    let (server, proxy) = server_with_proxy();
    let holder = held(&open(&server.url()));
    // Its heartbeats come every second.
    let builder = Locker::builder(&proxy.url()).ttl(millis(3_000));
    let locker = builder.build().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| locker.lock(NAME).unwrap());
        wait_for_line(&server, 1);
        proxy.lose_next_reply(&digest(ACQUIRE), true);
        wait_until("a lost reply", PATIENCE, || proxy.lost_replies() == 1);
        assert!(!waiter.is_finished());
        wait_for_line(&server, 1);
        holder.unlock().unwrap();
        let guard = waiter.join().unwrap();
        assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
        guard.unlock().unwrap();
    });
    assert_released(&server);
}

// Renew

#[test]
fn guard_whose_renewal_loses_its_reply_stays_held() {
    let (server, proxy) = server_with_proxy();
    let locker = Locker::builder(&proxy.url())
        .ttl(millis(3_000))
        .renew_every(millis(100))
        .build()
        .unwrap();
    proxy.lose_next_reply(&digest(RENEW), true);
    let guard = held(&locker);
    wait_until("a lost reply", PATIENCE, || proxy.lost_replies() == 1);
    for _ in 0..3 {
        wait_for_renewal(&guard);
    }
    assert!(guard.lost().is_empty());
    guard.unlock().unwrap();
    assert_released(&server);
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn renewal_that_timed_out_but_was_applied_keeps_the_old_deadline() {
    let (server, proxy) = server_with_proxy();
    let ttl = millis(4_000);
    let locker = Locker::builder(&proxy.url())
        .ttl(ttl)
        .renew_every(millis(400))
        .io_timeout(millis(400))
        .build()
        .unwrap();
    proxy.lose_next_reply(&digest(RENEW), false);
    let guard = held(&locker);
    let left = guard.remaining();
    let end = Instant::now() + left;
    wait_until("a swallowed reply", PATIENCE, || proxy.lost_replies() == 1);
    let asked = proxy.requests();
    let mut looks = 0;
    loop {
        let (now, left) = (Instant::now(), guard.remaining());
        // Read after `remaining`: nothing was asked since, so nothing was confirmed.
        if proxy.requests() > asked {
            break;
        }
        assert!(now + left <= end, "{left:?} without a confirmed renewal");
        assert!(guard.is_held());
        looks += 1;
        thread::sleep(millis(2));
    }
    assert!(looks > 20, "{looks}");
    wait_until("a confirmed renewal", PATIENCE, || {
        Instant::now() + guard.remaining() > end + millis(100)
    });
    assert_eq!(proxy.lost_replies(), 1);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_released(&server);
}

#[test]
fn guard_none_of_whose_renewals_is_answered_is_lost_at_its_old_deadline() {
    let (server, proxy) = server_with_proxy();
    let locker = Locker::builder(&proxy.url())
        .ttl(millis(600))
        .renew_every(millis(100))
        .build()
        .unwrap();
    let guard = held(&locker);
    proxy.set(Fault::LoseReply { then_close: true });
    let (watch, left) = (Stopwatch::start(), guard.remaining());
    let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
    watch.assert_within(left);
    assert_eq!(lost.reason, LostReason::Expired);
    assert!(!guard.is_held());
    // The server has it still, or had it for longer: renewals reached it.
    assert!(within(RELEASE, || guard.unlock()).is_err());
    wait_until("the lock to be free", PATIENCE, || {
        server.get(LOCK).is_none()
    });
    assert_every_key_expires(&server);
}
