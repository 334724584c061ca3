//! A command and WAIT have two replies: whatever breaks between them, no later command takes one for its own.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use support::{Fault, Proxy};

use super::*;

#[test]
fn connection_that_ends_within_the_replies_is_never_used_again() {
    let set = Replicated::start(1);
    let proxy = Proxy::start(set.member(0).addr());
    let url = proxy.url();
    let opened = || {
        let builder = Locker::builder(&url)
            .min_replicas(1)
            .replica_timeout(millis(100));
        let builder = builder.outage_timeout(millis(50));
        builder.io_timeout(millis(200)).build().unwrap()
    };
    open(&set, 1).lock(NAME).unwrap().unlock().unwrap();
    // The longest reply is a token, about 20 bytes, and WAIT's is `:1`.
    for bytes in 0..=28 {
        let locker = opened();
        proxy.set(Fault::Truncate(bytes));
        let guard = locker.lock(NAME);
        proxy.set(Fault::None);
        if let Ok(guard) = guard {
            verify(&guard);
            guard.unlock().unwrap();
        }
        held(&locker).unlock().unwrap();
        assert_released(&set, 0);
    }
}

#[test]
fn late_confirmation_is_not_the_next_commands() {
    let set = Replicated::start(1);
    let proxy = Proxy::start(set.member(0).addr());
    let locker = Locker::builder(&proxy.url())
        .min_replicas(1)
        .io_timeout(millis(100));
    let locker = locker.build().unwrap();
    drop(held(&locker));
    proxy.set(Fault::Delay(millis(150)));
    assert!(locker.try_lock(NAME).is_err());
    proxy.set(Fault::None);
    wait_until("the release", PATIENCE, || {
        set.member(0).get(LOCK).is_none()
    });
    let guard = held(&locker);
    assert_eq!(
        set.member(0).counter("{crosslock:n}:fence"),
        Some(guard.fencing_token())
    );
}

#[test]
fn master_that_becomes_a_replica_under_a_wait_confirms_nothing() {
    let set = Replicated::start(2);
    stop_replicas(&set);
    let locker = builder(&set, 0, 1).replica_timeout(LONG).io_timeout(LONG);
    let locker = locker.outage_timeout(millis(100)).build().unwrap();
    let began = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            began.store(true, Relaxed);
            locker.try_lock_for(NAME, PATIENCE)
        });
        wait_until("the question", PATIENCE, || {
            began.load(Relaxed) && set.member(0).get(LOCK).is_some()
        });
        set.follow(0, 1);
        let error = waiter.join().unwrap().unwrap_err();
        assert!(
            matches!(error, Error::Unavailable { .. }),
            "{}",
            shown(&error)
        );
    });
}
