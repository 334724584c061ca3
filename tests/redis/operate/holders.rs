//! Holders that are no crosslock: what is shown of them, and that they are listed and broken.

use crosslock::LockState;

use super::*;
use support::RedisServer;

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
fn foreign_holder_is_listed_in_a_namespace_only() {
    let server = RedisServer::start();
    let locker = patient(&server.url());
    server.query::<()>(&["SET", "{crosslock:n}", "theirs"]);
    server.query::<()>(&["SET", "n", "theirs"]);
    server.query::<()>(&["RPUSH", "list", "theirs"]);
    for (namespace, expected) in [("crosslock", &["n"][..]), ("", &["own"])] {
        let locker = locker.with_namespace(namespace).expect("a namespace");
        // There, locks are told from other keys by their owners.
        let _own = namespace.is_empty().then(|| held(&locker, "own"));
        let names: Result<Vec<_>, _> = locker.list("").expect("list").collect();
        assert_eq!(names.expect("names"), expected);
    }
}
