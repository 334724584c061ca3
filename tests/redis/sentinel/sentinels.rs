//! Sentinels that are down, hang or lie, and a master that clients do not reach.

use super::liar::{Liar, state, strings};
use super::*;

#[test]
fn nothing_is_locked_at_a_replica_that_is_called_the_master() {
    let set = SentinelSet::start();
    let port = set.member(1).public_port().to_string();
    let liar = Liar::start(&state("999"), &strings(&["127.0.0.1", &port]));
    let hosts = set.hosts();
    let all = format!("redis+sentinel://{},{hosts}/mymaster", liar.addr());
    let only = format!("redis+sentinel://{}/mymaster", liar.addr());
    let found = Locker::open(&only);
    let error = found.expect_err("it is no master");
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    // If the liar is slower than the others, they count.
    if let Ok(locker) = Locker::open(&all) {
        let _ = locker.try_lock_for(NAME, millis(500));
    }
    let reads = set.member(1).command_calls("evalsha");
    assert_eq!(reads, 0);
}
