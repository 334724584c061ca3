//! Another server takes the place of the master.

use super::*;

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
