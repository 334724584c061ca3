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
fn guard_is_lost_by_its_own_clock_when_servers_are_silent() {
    let server = setup().start();
    let locker = open(&server.url());
    let guard = held(&locker);
    server.stop();
    let watch = Stopwatch::start();
    loss(&guard);
    watch.assert_within(TTL);
    server.go_on();
    let next = held(&locker);
    assert!(next.fencing_token() > guard.fencing_token());
}

#[test]
fn short_outages_cost_no_guard() {
    let server = setup().proxies().start();
    let locker = open(&server.url());
    let (guard, id) = (held(&locker), session_at(&server));
    for fault in [Fault::Refuse, Fault::BlackHole, Fault::HalfClose] {
        server.proxy().set(fault);
        std::thread::sleep(TTL / 5);
        server.proxy().set(Fault::None);
        assert_outlasts_ttl(&guard);
    }
    assert_eq!(session_at(&server), id);
    drop(guard);
    assert_works(&locker);
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

/// The old session's node is there as long as servers keep that. The locker doesn't take it for its own.
#[test]
fn locker_goes_on_by_another_session_while_servers_keep_the_old_one() {
    let server = setup().proxies().start();
    let (locker, other) = (open(&server.url()), server.own_addr());
    let guard = held(&locker);
    // Requests arrive, and touch the session there; answers don't.
    server.proxy().set(Fault::LoseReply { then_close: false });
    loss(&guard);
    server.proxy().set(Fault::None);
    let next = held(&locker);
    assert!(next.fencing_token() > guard.fencing_token());
    let other = open(&format!("zk://{other}/"));
    assert!(other.try_lock(NAME).expect("try_lock").is_none());
}

#[test]
fn whatever_of_an_answer_is_cut_off_locks_go_on() {
    let server = setup().proxies().start();
    let locker = open(&server.url());
    for bytes in (0..120).step_by(7) {
        server.proxy().set(Fault::Truncate(bytes));
        let began = Instant::now();
        let guard = locker.try_lock_for(NAME, millis(50));
        assert!(began.elapsed() < TTL, "{bytes}: {:?}", began.elapsed());
        server.proxy().set(Fault::None);
        drop(guard);
        assert_works(&locker);
    }
}
