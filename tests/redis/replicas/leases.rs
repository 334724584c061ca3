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
