//! Masters that sentinels replace between the waiters' questions and the release.

use support::SentinelSet;

use super::*;

#[test]
fn waiters_keep_their_order_when_sentinels_replace_the_master() {
    let set = SentinelSet::start();
    let old = set.master();
    let guard = held(&open(&set.url()), "n");
    let queue = Queue::of(4, &[set.url()], "n", set.member(old));
    let new = set.failover();
    assert_ne!(new, old);
    // The old master takes releases until it is told.
    set.wait_until_settled();
    queue.assert_still_waiting();
    queue.assert_served_in_order(guard);
    // Sentinels themselves listen there.
    wait_until("nobody to hear at the old master", PATIENCE, || {
        let words = ["PUBSUB", "CHANNELS", "crosslock:*"];
        set.member(old).query::<Vec<String>>(&words).is_empty()
    });
}
