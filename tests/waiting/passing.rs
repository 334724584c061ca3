//! Leases that are passed on while answers are lost.

use crosslock::{CancelToken, LeaseTicket};

use super::*;
use support::{Fault, Proxy, RedisServer};

/// A locker behind a proxy, the ticket of a lease that it passed on, and one of the same text.
fn scene(server: &RedisServer) -> (Proxy, Locker, [LeaseTicket; 2]) {
    let proxy = Proxy::start(server.addr());
    let lock = Locker::builder(&proxy.url())
        .ttl(LONG)
        .io_timeout(millis(300))
        .build()
        .unwrap();
    // The server knows the script from now on.
    let guard = lock.adopt(lock.lock("a").unwrap().into_ticket().expect("a ticket"));
    let ticket = guard.unwrap().into_ticket().expect("a ticket");
    let other = ticket.to_secret().parse().unwrap();
    (proxy, lock, [ticket, other])
}

#[test]
fn ticket_whose_adoption_was_not_answered_is_used_again() {
    let server = RedisServer::start();
    for then_close in [false, true] {
        let (proxy, lock, [ticket, other]) = scene(&server);
        proxy.set(Fault::LoseReply { then_close });
        let outcome = lock.adopt(&ticket);
        assert!(
            matches!(outcome, Err(Error::Unavailable { .. })),
            "{outcome:?}"
        );
        proxy.set(Fault::None);
        // It was carried out, for the owner that only this ticket knows.
        let outcome = lock.adopt(other);
        assert!(matches!(outcome, Err(Error::Lost { .. })), "{outcome:?}");
        let guard = lock.adopt(ticket).unwrap();
        guard.verify().unwrap();
        guard.unlock().unwrap();
    }
}

#[test]
fn ticket_whose_adoption_was_not_sent_is_used_again() {
    let server = RedisServer::start();
    let (proxy, lock, [ticket, other]) = scene(&server);
    proxy.set(Fault::BlackHole);
    let outcome = lock.adopt(&ticket);
    assert!(
        matches!(outcome, Err(Error::Unavailable { .. })),
        "{outcome:?}"
    );
    proxy.set(Fault::None);
    drop(ticket);
    lock.adopt(other).unwrap().unlock().unwrap();
}

#[test]
fn adoption_is_cancelled_in_time_and_made_again() {
    let server = RedisServer::start();
    let (proxy, lock, [ticket, _]) = scene(&server);
    let token = CancelToken::new();
    let cancelled = lock.with_cancel(&token);
    proxy.set(Fault::BlackHole);
    let adopting = calling(&cancelled, move |lock| Ok((lock.adopt(&ticket), ticket)));
    thread::sleep(millis(100));
    let watch = Stopwatch::start();
    token.cancel();
    let (outcome, ticket) = adopting.result();
    let took = watch.elapsed();
    watch.assert_took(took, millis(50));
    assert!(
        matches!(outcome, Err(Error::Cancelled { .. })),
        "{outcome:?}"
    );
    proxy.set(Fault::None);
    lock.adopt(ticket).unwrap().unlock().unwrap();
}
