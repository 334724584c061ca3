//! Leases are passed on that many may have, or that expire.

use std::time::Duration;

use crosslock::LeaseTicket;

use crate::passing::assert_lost;
use crate::{PATIENCE, Place};

pub(crate) fn readers_and_permits_are_passed_on(place: &Place) {
    let reader = place.read("a").unwrap();
    let semaphore = place.semaphore("b", 3).unwrap();
    let permits = semaphore.acquire_many(2).unwrap();
    for (name, guard) in [("a", reader), ("b", permits)] {
        let token = guard.fencing_token();
        let ticket: LeaseTicket = guard
            .into_ticket()
            .expect("a ticket")
            .to_secret()
            .parse()
            .unwrap();
        let guard = place.adopt(&ticket).unwrap();
        assert!(guard.fencing_token() > token);
        guard.verify().unwrap();
        assert_lost(place.adopt(&ticket));
        match name {
            "a" => {
                assert!(place.try_write("a").unwrap().is_none());
                assert!(place.try_read("a").unwrap().is_some());
            }
            _ => assert_eq!(semaphore.available_permits().unwrap(), 1),
        }
        guard.unlock().unwrap();
    }
    assert!(place.try_write("a").unwrap().is_some());
    assert_eq!(semaphore.available_permits().unwrap(), 3);
}

pub(crate) fn ticket_that_nobody_uses_lasts_for_its_ttl(place: &Place) {
    let ttl = place.ttl(Duration::from_millis(300));
    let lock = place.builder().ttl(ttl).build().unwrap();
    let ticket = lock.lock("a").unwrap().into_ticket().expect("a ticket");
    let next = place.try_lock_for("a", PATIENCE).unwrap().expect("it ends");
    assert!(next.was_abandoned());
    assert_lost(lock.adopt(ticket));
    next.verify().unwrap();
}
