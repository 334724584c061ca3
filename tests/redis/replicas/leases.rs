//! A lease goes on only while enough replicas have it.

use crosslock::LostReason;

use super::*;

#[test]
fn renewal_without_replicas_is_tried_again_and_the_lease_ends_with_its_validity() {
    let set = Replicated::start(1);
    let locker = builder(&set, 0, 1).ttl(millis(1_500)).build().unwrap();
    let guard = held(&locker);
    stop_replicas(&set);
    // The master itself has each of these renewals.
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it is lost");
    assert_eq!(lost.reason, LostReason::Expired);
    assert!(set.member(0).command_calls("wait") > 2);
    drop(guard);
    assert_released(&set, 0);
}

#[test]
fn renewal_goes_on_when_a_replica_comes_back() {
    let set = Replicated::start(1);
    let locker = builder(&set, 0, 1).ttl(millis(3_000)).build().unwrap();
    let guard = held(&locker);
    let calls = || set.member(0).command_calls("wait");
    let before = calls();
    stop_replicas(&set);
    wait_until("a renewal that fails", PATIENCE, || calls() > before + 1);
    continue_replicas(&set);
    let end = std::time::Instant::now() + guard.remaining();
    wait_until("a renewal", PATIENCE, || {
        assert!(guard.is_held(), "lost instead of renewed");
        std::time::Instant::now() + guard.remaining() > end + millis(1)
    });
    guard.unlock().unwrap();
}

#[test]
fn master_cut_off_from_its_replicas_confirms_no_holder() {
    let set = Replicated::start(1);
    let guard = held(&builder(&set, 0, 1).ttl(LONG).build().unwrap());
    verify(&guard);
    stop_replicas(&set);
    let error = guard.verify().unwrap_err();
    assert_too_few(&error);
    assert!(
        guard.is_held(),
        "it is still the guard's, as far as is known"
    );
    continue_replicas(&set);
    verify(&guard);
    set.member(0).query::<()>(&["DEL", LOCK]);
    assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
}

#[test]
fn ticket_is_adopted_once_replicas_have_it() {
    let set = Replicated::start(1);
    let locker = builder(&set, 0, 1).ttl(LONG).build().unwrap();
    let ticket = held(&locker).into_ticket().expect("a ticket");
    stop_replicas(&set);
    assert_too_few(&locker.adopt(&ticket).unwrap_err());
    continue_replicas(&set);
    let mut adopted = None;
    wait_until("a replica", PATIENCE, || {
        adopted = locker.adopt(&ticket).ok();
        adopted.is_some()
    });
    let guard = adopted.unwrap();
    assert_eq!(set.member(1).get(LOCK), set.member(0).get(LOCK));
    guard.unlock().unwrap();
}

#[test]
fn broken_lock_is_the_next_holders_also_without_replicas() {
    let set = Replicated::start(1);
    let locker = builder(&set, 0, 1).ttl(LONG).build().unwrap();
    let guard = held(&locker);
    stop_replicas(&set);
    locker.break_lock(NAME).unwrap();
    assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
    // Whoever has it next has it on the replicas, and the break with it.
    assert_too_few(&locker.try_lock(NAME).unwrap_err());
    continue_replicas(&set);
    locker.lock(NAME).unwrap().unlock().unwrap();
}
