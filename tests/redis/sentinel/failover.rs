//! Another server takes the place of the master.

use super::*;

#[test]
fn guard_outlives_a_failover_that_its_lease_was_copied_before() {
    let set = SentinelSet::start();
    // What was copied last, and the last renewal at the old master, are from the last tenths of a ttl.
    let builder = builder(&set.url()).renew_every(TTL / 10);
    let locker = builder.build().expect("open");
    let guard = held(&locker);
    let old = set.master();
    set.wait_until_settled();
    let new = set.failover();
    assert_ne!(old, new);
    // Until the old master follows, it renews and releases as before.
    set.wait_until_settled();
    assert!(guard.is_held(), "{:?}", guard.lost().try_recv());
    let renewed = || {
        let before = guard.remaining();
        thread::sleep(millis(20));
        guard.remaining() > before
    };
    wait_until("a renewal at the new master", PATIENCE, renewed);
    guard.verify().expect("still held");
    assert!(has_lock(&set, new));
    guard.unlock().expect("unlock");
    assert!(!has_lock(&set, new));
}

#[test]
fn error_names_the_master_that_is_down() {
    // The sentinels don't replace it before the test ends.
    let set = Setup::new().down_after(PATIENCE).sentinels();
    set.wait_until_settled();
    let locker = Locker::open(&set.url()).expect("open");
    let master = set.member(set.master());
    let address = master.addr().to_string();
    master.kill();
    let listed = locker
        .list("")
        .and_then(|mut names| names.next().transpose());
    for error in [
        listed.expect_err("it is down"),
        locker.inspect(NAME).expect_err("it is down"),
        locker.diagnose().expect_err("it is down"),
    ] {
        assert!(shown(&error).contains(&address), "{}", shown(&error));
    }
}

#[test]
fn doctor_names_the_sentinels_that_are_down() {
    let set = SentinelSet::start();
    let locker = open(&set);
    let servers = || {
        let findings = locker.diagnose().expect("diagnose");
        let found = findings.into_iter().find(|one| one.check == "servers");
        found.expect("it is looked at")
    };
    assert_eq!(servers().verdict, crosslock::Verdict::Fine);
    set.sentinel(1).kill();
    let address = set.sentinel(1).addr().to_string();
    let found = servers();
    assert!(
        matches!(found.verdict, crosslock::Verdict::Weak { .. }),
        "{found:?}"
    );
    assert!(
        found
            .found
            .contains(&format!("1 of 4 without an answer: {address}: ")),
        "{found:?}"
    );
}
