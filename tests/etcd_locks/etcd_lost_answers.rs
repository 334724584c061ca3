//! Each answer is lost once: the call comes to the right end all the same, and nothing stays behind.

use std::thread;
use std::time::Instant;

use crosslock::{Error, Locker};
use support::{Etcd, Fault, wait_until};

use crate::{LONG, PATIENCE, await_places, open, take, wait_for, with};

/// Its lockers reach it by a proxy.
fn server() -> Etcd {
    Etcd::setup().proxies().start()
}

/// The next answer to a transaction is lost; the connection is closed, or silent.
fn lose(server: &Etcd, then_close: bool) {
    server.proxy().lose_next_reply("/v3/kv/txn", then_close);
}

/// Short timeouts, so that a silent connection is soon given up.
fn hasty(server: &Etcd) -> Locker {
    let short = std::time::Duration::from_millis(300);
    with(server, |builder| builder.ttl(LONG).io_timeout(short))
}

#[track_caller]
fn assert_clean(server: &Etcd) {
    server.proxy().set(Fault::None);
    wait_until("all to be released", PATIENCE, || {
        server.keys("").is_empty()
    });
}

#[test]
fn lock_whose_answer_is_lost_is_had_once() {
    let server = server();
    let locker = hasty(&server);
    for then_close in [true, false] {
        lose(&server, then_close);
        let guard = wait_for(&locker);
        assert_eq!(server.keys(crate::LINE).len(), 1);
        assert!(!guard.was_abandoned());
        server.proxy().set(Fault::None);
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert_clean(&server);
    }
}

#[test]
fn reader_whose_answer_is_lost_is_in_once() {
    let server = server();
    let locker = hasty(&server);
    lose(&server, true);
    let guard = locker.try_read_for("n", PATIENCE).unwrap().unwrap();
    assert_eq!(server.keys(crate::LINE).len(), 1);
    guard.unlock().unwrap();
    assert_clean(&server);
}

#[test]
fn waiter_whose_answers_are_lost_keeps_its_place() {
    let server = server();
    let (one, other) = (hasty(&server), hasty(&server));
    let guard = take(&one);
    thread::scope(|scope| {
        lose(&server, true);
        let waits = scope.spawn(|| wait_for(&other));
        let places = await_places(&server, 2);
        // That of the next question, too: by which it goes in.
        wait_until("it waits", PATIENCE, || server.proxy().lost_replies() > 0);
        assert_eq!(server.keys(crate::LINE), places);
        let place = server.keys(crate::LINE);
        guard.unlock().unwrap();
        let next = waits.join().unwrap();
        assert!(place.contains(&server.keys(crate::LINE)[0]));
        assert!(!next.was_abandoned());
        next.unlock().unwrap();
    });
    assert_clean(&server);
}

#[test]
fn release_whose_answer_is_lost_counts() {
    let server = server();
    let locker = hasty(&server);
    let guard = take(&locker);
    lose(&server, true);
    guard.unlock().unwrap();
    assert_clean(&server);
    // Its lease may get a key yet, so it is none of the next.
    let next = take(&locker);
    assert!(!next.was_abandoned());
    next.unlock().unwrap();
    assert_clean(&server);
}

/// Another host would say that there is nothing to release.
#[test]
fn release_whose_answer_is_lost_on_a_new_connection_counts() {
    let server = server();
    let url = format!("etcd://{},{}/", server.addr(), server.own_addr());
    let build = || Locker::builder(&url).ttl(LONG).build().unwrap();
    let locker = server.proxy().asked_first_by(build);
    let ahead = server_itself(&server).lock("m").unwrap();
    let guard = take(&locker);
    thread::scope(|scope| {
        let before = server.proxy().requests();
        let waits = scope.spawn(|| locker.try_lock_for("m", PATIENCE));
        // A lease, a place in line, and a watch, which keeps the connection that was idle.
        wait_until("it watches", PATIENCE, || {
            server.proxy().requests() == before + 3
        });
        server.proxy().lose_next_reply("request_delete_range", true);
        guard.unlock().unwrap();
        wait_until("a lost answer", PATIENCE, || {
            server.proxy().lost_replies() == 1
        });
        ahead.unlock().unwrap();
        waits.join().unwrap().unwrap().unwrap().unlock().unwrap();
    });
    assert_clean(&server);
}

/// Reaches it without a proxy.
fn server_itself(server: &Etcd) -> Locker {
    Locker::open(&format!("etcd://{}/", server.own_addr())).unwrap()
}

#[test]
fn release_that_is_never_answered_is_tried_again() {
    let server = server();
    let locker = hasty(&server);
    let guard = take(&locker);
    server.proxy().set(Fault::LoseReply { then_close: true });
    let released = guard.unlock();
    assert!(
        matches!(released, Err(Error::Unavailable { .. })),
        "{released:?}"
    );
    assert_clean(&server);
    let other = open(&server);
    assert!(!take(&other).was_abandoned());
}

#[test]
fn call_that_is_never_answered_takes_nothing() {
    let server = server();
    let locker = hasty(&server);
    server.proxy().set(Fault::LoseReply { then_close: true });
    let taken = locker.try_lock_for("n", std::time::Duration::from_millis(200));
    assert!(!matches!(taken, Ok(Some(_))));
    assert_clean(&server);
}

#[test]
fn downgrade_whose_answer_is_lost_counts() {
    let server = server();
    let locker = hasty(&server);
    for _ in 0..2 {
        let guard = take(&locker);
        let token = guard.fencing_token();
        // That of the renewal before it, and then its own.
        lose(&server, true);
        let reading = guard.downgrade().unwrap();
        assert!(reading.fencing_token() > token);
        reading.verify().unwrap();
        assert!(locker.try_read("n").unwrap().is_some());
        reading.unlock().unwrap();
        assert_clean(&server);
    }
}

#[test]
fn downgrade_whose_answer_is_lost_is_not_told_as_abandoned() {
    let server = server();
    let locker = with(&server, |builder| builder.ttl(crate::TTL));
    let guard = take(&locker);
    // Only the downgrade itself deletes something.
    let proxy = server.proxy();
    proxy.lose_next_reply("request_delete_range", true);
    let reading = guard.downgrade().unwrap();
    assert_eq!(proxy.lost_replies(), 1);
    let end = Instant::now() + reading.remaining();
    wait_until("a renewal", PATIENCE, || {
        Instant::now() + reading.remaining() > end + crate::TTL / 4
    });
    let other = open(&server).try_read("n").unwrap().unwrap();
    assert!(!other.was_abandoned());
    drop((other, reading));
    assert_clean(&server);
}

#[test]
fn break_whose_answer_is_lost_says_whom_it_broke() {
    let server = server();
    let locker = hasty(&server);
    let guard = take(&locker);
    let proxy = server.proxy();
    proxy.lose_next_reply("request_delete_range", true);
    assert_eq!(locker.break_lock("n").unwrap().len(), 1);
    assert_eq!(proxy.lost_replies(), 1);
    assert!(!guard.is_held());
}

#[test]
fn adoption_whose_answer_is_lost_counts() {
    let server = server();
    let (one, other) = (hasty(&server), hasty(&server));
    let guard = take(&one);
    let token = guard.fencing_token();
    let ticket = guard.into_ticket().expect("a ticket");
    lose(&server, true);
    let guard = other.adopt(ticket).unwrap();
    assert!(guard.fencing_token() > token);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_clean(&server);
}

#[test]
fn cut_watch_delays_nobody_for_long() {
    let server = server();
    let (one, other) = (open(&server), open(&server));
    let guard = take(&one);
    thread::scope(|scope| {
        let waits = scope.spawn(|| wait_for(&other));
        await_places(&server, 2);
        for _ in 0..3 {
            server.proxy().set(Fault::Refuse);
            thread::sleep(std::time::Duration::from_millis(50));
            server.proxy().set(Fault::None);
        }
        guard.unlock().unwrap();
        waits.join().unwrap().unlock().unwrap();
    });
    assert_clean(&server);
}
