//! Values that only the master has.

use super::*;

#[test]
fn value_that_no_replica_has_is_not_known_to_be_set() {
    let set = Replicated::start(1);
    let url = format!("{}?min_replicas=1&replica_timeout=50ms", set.url(0));
    let locker = Locker::builder(&url).outage_timeout(millis(200)).build();
    let once = locker.unwrap().once_lock::<u64>(NAME).unwrap();
    stop_replicas(&set);
    let _: String = set.member(0).query(&["SET", "{crosslock:n}:value", "7"]);
    assert_too_few(&once.get().unwrap_err());
    assert_too_few(&once.wait_for(PATIENCE).unwrap_err());
    set.members()[1..].iter().for_each(|member| member.cont());
    wait_until("the replica", PATIENCE, || {
        once.get().is_ok_and(|value| value == Some(7))
    });
}
