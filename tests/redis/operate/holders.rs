//! How soon holders know that their lock was broken, and what is shown of them.

use crosslock::LockState;

use super::*;
use support::{Proxy, RedisServer};

#[test]
fn foreign_holder_is_shown_and_broken_without_its_text() {
    let server = RedisServer::start();
    let locker = patient(&server.url());
    for (text, ttl) in [
        ("a secret", &["PX", "60000"][..]),
        // It looks almost like an owner.
        ("0123456789-0123456789-0123456789-012345/a/1/2", &[]),
    ] {
        server.query::<()>(&[&["SET", "{crosslock:n}", text][..], ttl].concat());
        let seen = locker.inspect("n").expect("inspect");
        assert_eq!(seen.state, LockState::Exclusive);
        let broken = locker.break_lock("n").expect("break");
        for holder in [&seen.holders[0], &broken[0]] {
            assert_eq!((&holder.party, holder.token), (&None, None));
            assert_eq!(holder.remaining.is_none(), ttl.is_empty());
            assert!(holder.remaining.is_none_or(|left| left > millis(30_000)));
        }
        assert!(!format!("{seen:?} {broken:?}").contains(text));
        drop(held(&locker, "n"));
    }
}

#[test]
fn inspection_is_one_round_trip() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let locker = patient(&proxy.url());
    let guard = held(&locker, "n");
    locker.inspect("n").expect("inspect");
    let before = proxy.requests();
    let seen = locker.inspect("n").expect("inspect");
    assert_eq!(proxy.requests() - before, 1);
    assert_eq!(seen.holders[0].token, Some(guard.fencing_token()));
    assert!(seen.holders[0].held_for.is_some());
}
