//! Sentinels that lie, or are down.

use crosslock::Verdict;

use super::liar::Liar;
use super::*;

#[test]
fn nothing_is_locked_at_a_replica_that_is_called_the_master() {
    let set = SentinelSet::start();
    let liar = Liar::start(999, set.member(1).public_port());
    let all = format!("redis+sentinel://{},{}/mymaster", liar.addr, set.hosts());
    let found = Locker::open(&liar.url());
    let error = found.expect_err("it is no master");
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    // If the liar is slower than the others, they count.
    if let Ok(locker) = Locker::open(&all) {
        let _ = locker.try_lock_for(NAME, millis(500));
    }
    let reads = set.member(1).command_calls("evalsha");
    assert_eq!(reads, 0);
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
    assert_eq!(servers().verdict, Verdict::Fine);
    set.sentinel(1).kill();
    let address = set.sentinel(1).addr();
    let found = servers();
    assert!(matches!(found.verdict, Verdict::Weak { .. }), "{found:?}");
    let told = format!("1 of 4 don't answer: {address}: ");
    assert!(found.found.contains(&told), "{found:?}");
}
