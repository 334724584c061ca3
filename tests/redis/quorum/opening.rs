//! What is told when the URL of a quorum is opened, and what its locks are not.

use super::*;

#[test]
fn majority_has_to_answer_and_to_decide_for_itself() {
    let set = Setup::new().quorum(3);
    set.server(2).kill();
    pass(&open(&set.url("0s")));
    let replica = RedisServer::builder().replica_of(set.server(0).port());
    let node = RedisServer::builder().config("cluster-enabled", "yes");
    for (other, word) in [(replica, "replica"), (node, "node of a cluster")] {
        let other = other.start();
        let [a, b, down] = [set.server(0), &other, set.server(2)].map(RedisServer::addr);
        let found = Locker::open(&format!("redis+quorum://{a},{b},{down}"));
        let text = shown(&found.expect_err("it isn't independent"));
        assert!(text.contains(word), "{text}");
    }
    set.server(1).kill();
    let error = Locker::open(&set.url("0s")).expect_err("one of three answers");
    assert_like!(error, Error::Unavailable { .. });
}

#[test]
fn what_would_be_no_quorum_is_refused() {
    let set = Setup::new().quorum(3);
    let [a, b, c] = [0, 1, 2].map(|at| set.server(at).addr());
    for rest in [
        format!("{a},{b}"),
        format!("{a},{b},{c},127.0.0.1:1"),
        format!("{a},{b},{a}"),
        format!("{a},{b},{c}/?min_replicas=1"),
    ] {
        let found = Locker::open(&format!("redis+quorum://{rest}"));
        let error = found.expect_err("it is refused");
        assert_like!(error, Error::InvalidUrl { .. }, "{rest}");
    }
    let longer = builder(&set.url("2s")).ttl(Duration::from_millis(2001));
    let error = longer.build().expect_err("it is longer than rejoin");
    assert_like!(error, Error::InvalidOption { option: "ttl", .. });
}

#[test]
fn what_is_no_exclusive_lock_is_unsupported() {
    let set = Setup::new().quorum(3);
    let locker = open(&set.url("0s"));
    let permits = locker.semaphore(NAME, 2);
    for (what, error) in [
        ("mutex", locker.mutex(NAME, 0).err()),
        ("rwlock", locker.rwlock(NAME, 0).err()),
        ("read", locker.read(NAME).err()),
        ("semaphore", permits.and_then(|all| all.acquire()).err()),
        ("delay_queue", locker.delay_queue::<u8>(NAME).err()),
    ] {
        assert_like!(error, Some(Error::Unsupported { .. }), "{what}");
    }
}
