//! Parts of the set don't hear each other, and nobody takes the master's place: its sentinels reach it.

use crosslock::LostReason;

use super::*;
use support::{Fault, within};

#[test]
fn clients_that_do_not_reach_the_master_are_told_in_time_and_go_on_later() {
    let set = Setup::new().proxies().sentinels();
    let (locker, other) = (open(&set), open(&set));
    let guard = held(&locker);
    set.member(0).proxy().set(Fault::BlackHole);
    for time in [0, 300, 700].map(millis) {
        let found = within(time, || other.try_lock_for(NAME, time));
        assert!(matches!(found, Err(Error::Unavailable { .. })), "{found:?}");
    }
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(lost.reason, LostReason::Expired);
    within(millis(500), || drop(guard));
    let waiting = waiting(&other);
    assert_eq!(set.master(), 0);
    set.member(0).proxy().set(Fault::None);
    let (guard, _) = waiting.join().expect("no panic");
    guard.unlock().expect("unlock");
    assert_works(&locker);
}

#[test]
fn master_without_its_replicas_locks_only_for_those_who_want_none() {
    let set = Setup::new().proxies().sentinels();
    let strict = builder(&format!(
        "{}?min_replicas=1&replica_timeout=50ms",
        set.url()
    ));
    let strict = strict.build().expect("open");
    let guard = held(&strict);
    let replicas = || set.members()[1..].iter();
    replicas().for_each(|replica| set.member(0).cut_from(replica));
    let lost = guard.lost().recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(lost.reason, LostReason::Expired);
    drop(guard);
    assert_works(&open(&set));
    let found = strict.try_lock(NAME);
    assert!(matches!(found, Err(Error::Unavailable { .. })), "{found:?}");
    assert_eq!(set.master(), 0);
    replicas().for_each(|replica| set.member(0).join(replica));
    strict.lock(NAME).expect("lock").unlock().expect("unlock");
}
