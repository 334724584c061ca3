//! What `lock/renew.lua` does.

use super::bench::Bench;
use super::seen::is_full;
use super::{COUNTER_TTL, FULL, TTL};
use support::RedisServer;

#[test]
fn owner_renews_both_keys() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    for key in [bench.lock.clone(), bench.fence.clone()] {
        bench.query::<()>(&["PEXPIRE", &key, "5000"]);
    }
    assert!(bench.renew("a", TTL));
    let [lock, fence, ..] = bench.seen().pttls;
    assert!(is_full(lock, FULL), "{lock}");
    assert!(is_full(fence, COUNTER_TTL), "{fence}");
    assert_eq!(bench.contents(), (Some("a".into()), Some(token)));
}

#[test]
fn nobody_else_renews() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    assert!(!bench.renew("a", TTL));
    assert_eq!(server.keys(), [""; 0]);
    bench.token("a");
    for key in [bench.lock.clone(), bench.fence.clone()] {
        bench.query::<()>(&["PEXPIRE", &key, "30000"]);
    }
    let before = bench.contents();
    assert!(!bench.renew("b", TTL));
    assert_eq!(bench.contents(), before);
    assert!(bench.seen().pttls.iter().all(|pttl| *pttl <= 30_000));
}

#[test]
fn lock_that_is_gone_is_not_taken_by_a_renewal() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.expire();
    assert!(!bench.renew("a", TTL));
    assert_eq!(bench.seen().holder, None);
}

#[test]
fn who_waits_renews_nothing() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.wait("b", "");
    let before = bench.seen();
    assert!(!bench.renew("b", 10 * TTL));
    let after = bench.seen();
    assert_eq!(after.contents(), before.contents());
    assert!(after.pttls[0] <= before.pttls[0]);
}
