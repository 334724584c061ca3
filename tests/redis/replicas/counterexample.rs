//! WAIT is no consensus: a lease that a replica has is lost if another replica is promoted.

use support::Setup;

use super::*;

/// A master and two replicas, of which the second doesn't hear of the first holder.
fn set_with_a_replica_behind() -> Replicated {
    let set = Setup::new().proxies().replicated(2);
    set.cut(0, 2);
    set
}

/// The master dies, the replica that was behind is promoted, and the other one joins it.
fn fail_over_to_the_one_behind(set: &Replicated) {
    set.member(0).kill();
    set.promote(2);
    set.follow(1, 2);
    set.wait_until_caught_up();
}

#[test]
fn one_of_two_replicas_lets_in_two_holders() {
    let set = set_with_a_replica_behind();
    let first = builder(&set, 0, 1).ttl(LONG).build().unwrap();
    let first = held(&first);
    fail_over_to_the_one_behind(&set);
    let second = builder(&set, 2, 1).ttl(LONG).build().unwrap();
    let second = held(&second);
    assert!(first.is_held() && second.is_held(), "both are valid");
    assert!(second.fencing_token() > first.fencing_token());
}

#[test]
fn all_replicas_let_in_one_holder() {
    let set = set_with_a_replica_behind();
    let locker = builder(&set, 0, 2).ttl(LONG).build().unwrap();
    assert_too_few(&locker.try_lock(NAME).unwrap_err());
    set.join(0, 2);
    // It may have to ask for all data anew.
    set.wait_until_caught_up();
    let first = locker.lock(NAME).unwrap();
    set.cut(0, 2);
    fail_over_to_the_one_behind(&set);
    let second = builder(&set, 2, 1).ttl(LONG).build().unwrap();
    assert!(second.try_lock(NAME).unwrap().is_none());
    assert!(first.is_held());
}
