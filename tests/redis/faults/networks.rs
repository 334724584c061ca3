//! Connections that hang, end, or crawl.

use std::thread;
use std::time::Instant;

use crosslock::{Error, Locker, LockerBuilder, LostReason};

use super::*;
use support::{BlackHole, Fault, Proxy, RedisServer, wait_until};

const FAULTS: [Fault; 8] = [
    Fault::BlackHole,
    Fault::Trickle { every: millis(50) },
    Fault::HalfClose,
    Fault::Truncate(0),
    Fault::Truncate(1),
    Fault::LoseReply { then_close: false },
    Fault::LoseReply { then_close: true },
    Fault::Refuse,
];

/// Timeouts that help nobody: only a call's own bound does.
fn patient(url: &str) -> LockerBuilder {
    Locker::builder(url).io_timeout(LONG).connect_timeout(LONG)
}

/// Each fault with a server, a way to it, and a locker that has used it.
fn each_fault(test: impl Fn(Fault, &RedisServer, &Proxy, &Locker)) {
    let server = RedisServer::start();
    load_scripts(&server);
    for fault in FAULTS {
        let proxy = Proxy::start(server.addr());
        let locker = patient(&proxy.url()).build().unwrap();
        assert_works(&locker);
        test(fault, &server, &proxy, &locker);
        proxy.set(Fault::None);
        assert_every_key_expires(&server);
        drop(locker);
        drop(proxy);
        assert_no_clients(&server);
        server.query::<()>(&["FLUSHALL"]);
    }
}

// Opening

fn assert_opening_is_bounded(url: &str) {
    let builder = Locker::builder(url)
        .connect_timeout(millis(300))
        .io_timeout(LONG);
    let error = within(millis(300), || builder.build()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[test]
fn opening_ends_in_time_where_connecting_hangs() {
    let hole = BlackHole::start();
    assert_opening_is_bounded(&hole.url());
    assert_opening_is_bounded(&format!("redis://:secret@{}/", hole.addr()));
}

#[test]
fn opening_ends_in_time_where_the_server_accepts_and_is_silent() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    proxy.set(Fault::BlackHole);
    assert_opening_is_bounded(&proxy.url());
}

#[test]
fn logging_in_ends_in_time_where_the_server_accepts_and_is_silent() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    proxy.set(Fault::BlackHole);
    assert_opening_is_bounded(&proxy.url().replace("//", "//:secret@"));
    assert_opening_is_bounded(&format!("{}3", proxy.url()));
}

#[test]
fn opening_ends_in_time_whatever_the_network_does() {
    let server = RedisServer::start();
    for fault in FAULTS {
        let proxy = Proxy::start(server.addr());
        proxy.set(fault);
        let builder = Locker::builder(&proxy.url())
            .connect_timeout(millis(300))
            .io_timeout(LONG);
        // A reply of seven bytes may just have come through a trickle.
        let opened = within(millis(400), || builder.build());
        if !matches!(fault, Fault::Trickle { .. }) {
            let error = opened.unwrap_err();
            assert!(
                matches!(error, Error::Unavailable { .. }),
                "{fault:?}: {error}"
            );
        }
    }
    assert_no_clients(&server);
}

#[test]
fn host_that_does_not_exist_is_unavailable_and_named() {
    let builder = Locker::builder("redis://no-such-host.invalid/").connect_timeout(millis(2_000));
    // The lookup may be repeated once.
    let error = within(millis(4_000), || builder.build()).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(
        error.to_string().contains("no-such-host.invalid"),
        "{error}"
    );
}

// Taking

#[test]
fn timed_wait_ends_in_time_whatever_the_network_does() {
    each_fault(|fault, server, proxy, locker| {
        proxy.set(fault);
        let timeout = millis(200);
        let start = Instant::now();
        let outcome = within(timeout + millis(100), || locker.try_lock_for(NAME, timeout));
        let error = outcome.expect_err("no whole reply can have come");
        assert!(
            matches!(error, Error::Unavailable { .. }),
            "{fault:?}: {error}"
        );
        assert!(start.elapsed() >= timeout, "{fault:?}: it gave up early");
        // What may be left is a lease, and ends as such.
        assert!(server.pttl(LOCK) <= 10_000);
    });
}

#[test]
fn timed_wait_for_a_taken_lock_ends_in_time_when_the_network_breaks_meanwhile() {
    each_fault(|fault, server, proxy, locker| {
        server.query::<()>(&["SET", LOCK, "theirs", "PX", "60000"]);
        let timeout = millis(250);
        thread::scope(|scope| {
            let asked = proxy.requests();
            let waiter = scope
                .spawn(|| within(timeout + millis(100), || locker.try_lock_for(NAME, timeout)));
            wait_until("an attempt", PATIENCE, || proxy.requests() > asked);
            proxy.set(fault);
            // The network may have broken after the last answer that was needed.
            if let Ok(guard) = waiter.join().unwrap() {
                assert!(guard.is_none(), "{fault:?}");
            }
        });
        assert_eq!(server.get(LOCK).as_deref(), Some("theirs"), "{fault:?}");
    });
}

#[test]
fn lock_gets_through_when_the_network_is_back() {
    each_fault(|fault, server, proxy, locker| {
        // Shorter than the fault: a new attempt follows each that hangs.
        let locker = if fault == Fault::BlackHole || matches!(fault, Fault::LoseReply { .. }) {
            &Locker::builder(&proxy.url())
                .io_timeout(millis(100))
                .build()
                .unwrap()
        } else {
            locker
        };
        proxy.set(fault);
        thread::scope(|scope| {
            let asked = proxy.accepted() + proxy.requests();
            let waiter = scope.spawn(|| locker.lock(NAME).expect("it keeps trying"));
            wait_until("some attempts", PATIENCE, || {
                proxy.accepted() + proxy.requests() > asked + 1 || waiter.is_finished()
            });
            proxy.set(Fault::None);
            let guard = waiter.join().unwrap_or_else(|_| panic!("{fault:?}"));
            assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
            guard.unlock().unwrap();
        });
        assert_released(server);
    });
}

#[test]
fn timed_wait_ends_in_time_where_nothing_listens() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = patient(&proxy.url()).build().unwrap();
    drop(proxy);
    let timeout = millis(200);
    let error = within(timeout, || locker.try_lock_for(NAME, timeout)).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert_no_clients(&server);
}

// Holding

fn guard_in_each_fault(end: impl Fn(Fault, crosslock::LockGuard)) {
    each_fault(|fault, server, proxy, locker| {
        let guard = held(locker);
        proxy.set(fault);
        end(fault, guard);
        assert!(server.pttl(LOCK) <= 10_000, "a lease at most");
    });
}

#[test]
fn unlock_ends_in_time_whatever_the_network_does() {
    guard_in_each_fault(|fault, guard| {
        let outcome = within(RELEASE, || guard.unlock());
        // An answer of four bytes may just have come through a trickle.
        if outcome.is_ok() && matches!(fault, Fault::Trickle { .. }) {
            return;
        }
        let error = outcome.expect_err("unconfirmed");
        assert!(
            matches!(error, Error::Unavailable { .. }),
            "{fault:?}: {error}"
        );
    });
}

#[test]
fn drop_ends_in_time_whatever_the_network_does() {
    guard_in_each_fault(|_, guard| within(RELEASE, || drop(guard)));
}

#[test]
fn unlock_ends_in_time_while_a_renewal_hangs() {
    let server = RedisServer::start();
    for fault in FAULTS {
        let proxy = Proxy::start(server.addr());
        let builder = patient(&proxy.url())
            .ttl(millis(5_000))
            .renew_every(millis(100));
        let locker = builder.build().unwrap();
        let guard = held(&locker);
        proxy.set(fault);
        let before = proxy.requests() + proxy.accepted();
        // A connection that is closed at once carries no request.
        wait_until("a renewal", PATIENCE, || {
            proxy.requests() + proxy.accepted() > before
        });
        let outcome = within(RELEASE, || guard.unlock());
        assert!(
            outcome.is_err() || matches!(fault, Fault::Trickle { .. }),
            "{fault:?}"
        );
        proxy.set(Fault::None);
        drop(locker);
        server.query::<()>(&["FLUSHALL"]);
    }
    assert_no_clients(&server);
}

#[test]
fn guard_outlives_a_broken_network_that_comes_back() {
    let server = RedisServer::start();
    for fault in FAULTS {
        let proxy = Proxy::start(server.addr());
        let builder = Locker::builder(&proxy.url())
            .ttl(millis(6_000))
            .renew_every(millis(100));
        let locker = builder.io_timeout(millis(200)).build().unwrap();
        let guard = held(&locker);
        wait_for_renewal(&guard);
        proxy.set(fault);
        let before = proxy.requests() + proxy.accepted();
        wait_until("some renewals", PATIENCE, || {
            proxy.requests() + proxy.accepted() > before + 1
        });
        proxy.set(Fault::None);
        wait_for_renewal(&guard);
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert_released(&server);
        drop(locker);
    }
    assert_no_clients(&server);
}

#[test]
fn guard_is_lost_in_time_when_the_network_stays_broken() {
    let server = RedisServer::start();
    for fault in FAULTS {
        let proxy = Proxy::start(server.addr());
        let builder = patient(&proxy.url())
            .ttl(millis(400))
            .renew_every(millis(100));
        let locker = builder.build().unwrap();
        let guard = held(&locker);
        proxy.set(fault);
        let lost = guard.lost().recv_timeout(PATIENCE);
        assert!(!guard.is_held());
        assert_eq!(lost.unwrap().reason, LostReason::Expired, "{fault:?}");
        within(RELEASE, || guard.unlock()).unwrap_err();
        proxy.set(Fault::None);
        wait_until("the lease to end", PATIENCE, || server.get(LOCK).is_none());
        assert_works(&locker);
        drop(locker);
    }
    assert_no_clients(&server);
}

// Slow, but whole

#[test]
fn slow_network_delays_and_breaks_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    proxy.set(Fault::Delay(millis(20)));
    let builder = Locker::builder(&proxy.url())
        .ttl(millis(3_000))
        .renew_every(millis(200));
    let (one, two) = (builder.clone().build().unwrap(), builder.build().unwrap());
    let guard = held(&one);
    assert!(two.try_lock(NAME).unwrap().is_none());
    assert!(two.try_lock_for(NAME, millis(500)).unwrap().is_none());
    wait_for_renewal(&guard);
    guard.verify().unwrap();
    let token = guard.fencing_token();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| two.lock(NAME).unwrap());
        let watch = Stopwatch::start();
        if let Err(error) = guard.unlock() {
            // It was sent again, and the second answer can't tell who ended the lease.
            watch.assert_late(millis(100), millis(200), error);
        }
        let next = waiter.join().unwrap();
        assert!(next.fencing_token() > token);
        next.unlock().unwrap();
    });
    drop((one, two));
    assert_released(&server);
    assert_no_clients(&server);
}

#[test]
fn timed_wait_for_a_taken_lock_over_a_slow_network_is_none() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = open(&proxy.url());
    server.query::<()>(&["SET", LOCK, "theirs", "PX", "60000"]);
    // A round trip takes longer than a timed call may overrun.
    proxy.set(Fault::Delay(millis(60)));
    let timeout = millis(500);
    let outcome = within(timeout + millis(100), || locker.try_lock_for(NAME, timeout));
    // It was answered that the lock is taken.
    assert!(outcome.unwrap().is_none());
    wait_until("it leaves the line", PATIENCE, || server.keys() == [LOCK]);
}

#[test]
fn lease_is_counted_from_before_the_request_was_sent() {
    let server = RedisServer::start();
    load_scripts(&server);
    let proxy = Proxy::start(server.addr());
    let ttl = millis(5_000);
    let builder = Locker::builder(&proxy.url())
        .ttl(ttl)
        .renew_every(millis(300));
    let locker = builder.build().unwrap();
    let delay = millis(150);
    proxy.set(Fault::Delay(delay));
    let guard = held(&locker);
    // There and back.
    let most = ttl - 2 * delay;
    assert!(guard.remaining() <= most, "{:?}", guard.remaining());
    let end = Instant::now() + guard.remaining();
    wait_until("a renewal", PATIENCE, || {
        let left = guard.remaining();
        assert!(left <= most, "{left:?} after a renewal");
        Instant::now() + left > end + millis(50)
    });
    proxy.set(Fault::None);
    guard.unlock().unwrap();
}

#[test]
fn grant_that_is_older_than_its_lease_is_not_believed() {
    let server = RedisServer::start();
    load_scripts(&server);
    let proxy = Proxy::start(server.addr());
    let ttl = millis(300);
    let locker = Locker::builder(&proxy.url()).ttl(ttl).build().unwrap();
    proxy.set(Fault::Delay(millis(200)));
    // Every answer is 400 ms old when it comes.
    match locker.try_lock_for(NAME, millis(1_000)) {
        Ok(guard) => assert!(guard.is_none(), "{guard:?}"),
        Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
    }
    proxy.set(Fault::None);
    wait_until("the lease to end", PATIENCE, || server.get(LOCK).is_none());
    assert_works(&locker);
}
