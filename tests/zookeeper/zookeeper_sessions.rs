//! The session of a locker: lost, taken up at another server, and made anew.

use super::*;
use support::{Fault, Stopwatch};

#[test]
fn guards_are_told_when_servers_end_the_session() {
    let server = setup().proxies().start();
    let locker = open(&server.url());
    let guards = [locker.lock("a"), locker.read("b")];
    let guards = guards.map(|guard| guard.expect("a guard"));
    let tokens = guards.each_ref().map(LockGuard::fencing_token);
    let (watch, id) = (Stopwatch::start(), session_at(&server));
    // Otherwise it would be taken up again before it is ended.
    server.proxy().set(Fault::Refuse);
    server.expire(id);
    server.proxy().set(Fault::None);
    for guard in &guards {
        assert_eq!(loss(guard), LostReason::Expired);
    }
    // Not by the end of the lease: the server's word is passed on.
    watch.assert_within(TTL / 2);
    // The locker goes on, by another session.
    for (name, token) in ["a", "b"].into_iter().zip(tokens) {
        let guard = locker.lock(name).expect("lock");
        assert!(guard.fencing_token() > token && guard.was_abandoned() == (name == "a"));
    }
    assert_ne!(session_at(&server), id);
}

#[test]
fn session_is_taken_up_at_another_server() {
    let ensemble = setup().ensemble(3);
    let locker = open(&ensemble.url());
    let guard = held(&locker);
    let at = with_session(&ensemble);
    let id = session_at(ensemble.member(at));
    ensemble.kill(at);
    assert_outlasts_ttl(&guard);
    assert_eq!(session_at(ensemble.member(with_session(&ensemble))), id);
    drop(guard);
    assert_works(&locker);
}
