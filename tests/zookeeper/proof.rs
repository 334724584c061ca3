//! A lease lasts no longer than the leader is known to keep the session.

use super::*;
use support::Ensemble;

/// Servers that are cut off from each other notice that late, and serve meanwhile.
fn slow_to_notice() -> Ensemble {
    let setup = setup().proxies();
    setup.config("syncLimit", "100").ensemble(3)
}

#[test]
fn server_that_is_cut_off_from_its_leader_extends_no_lease() {
    let ensemble = slow_to_notice();
    let leader = ensemble.leader();
    let follower = (leader + 1) % 3;
    let locker = open(&ensemble.member(follower).url());
    let other = open(&ensemble.member(leader).url());
    let guard = held(&locker);
    ensemble.cut(follower, leader);
    // It goes on serving those that it has.
    assert_eq!(ensemble.member(follower).sessions().len(), 1);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| held(&other));
        while !waits.is_finished() {
            std::thread::sleep(millis(1));
        }
        // Looked at after the other has it: at no moment do both.
        assert!(!guard.is_held());
        let next = waits.join().expect("no panic");
        assert!(next.fencing_token() > guard.fencing_token());
        assert_eq!(
            ensemble.member(follower).mode().as_deref(),
            Some("follower")
        );
    });
    ensemble.join(follower, leader);
}

#[test]
fn session_leaves_a_server_that_is_cut_off_from_its_leader() {
    let ensemble = slow_to_notice();
    let leader = ensemble.leader();
    let locker = open(&ensemble.url());
    let guard = held(&locker);
    for _ in 0..2 {
        let has_session = |index: &usize| !ensemble.member(*index).sessions().is_empty();
        let at = (0..3).find(has_session).expect("it is somewhere");
        if at == leader {
            ensemble.member(leader).proxy().set(support::Fault::Refuse);
            assert_outlasts_ttl(&guard);
            ensemble.member(leader).proxy().set(support::Fault::None);
            continue;
        }
        ensemble.cut(at, leader);
        assert_outlasts_ttl(&guard);
        return;
    }
    panic!("the session stays at the leader");
}

#[test]
fn guard_outlives_the_leader() {
    let ensemble = setup().ensemble(3);
    let leader = ensemble.leader();
    let url = ensemble.member((leader + 1) % 3).url();
    let locker = open(&url);
    let guard = held(&locker);
    ensemble.kill(leader);
    assert_outlasts_ttl(&guard);
    drop(guard);
    assert_works(&locker);
}

#[test]
fn reader_after_a_downgrade_counts_no_longer_than_the_session_is_proven() {
    let tick = millis(500);
    let server = ZooKeeper::setup().tick(tick).start();
    let ttl = tick * 8;
    let locker = builder(&server.url()).ttl(ttl).build().expect("open");
    let writing = locker.write(NAME).expect("write");
    // A new session counts at once. What is proven later is more than a tick old.
    std::thread::sleep(tick * 4);
    let reading = writing.downgrade().expect("downgrade");
    let left = reading.remaining();
    assert!(left <= ttl - tick, "{left:?}");
    assert!(reading.is_held());
}
