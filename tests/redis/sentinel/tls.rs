//! Sentinels and servers that all speak TLS, and want passwords.

use super::*;

fn set() -> SentinelSet {
    let setup = Setup::new().password("s3cr3t-p4ssw0rd");
    setup.sentinel_password("two").tls().sentinels()
}

/// Waits until so many stand in the lock's queue at the server.
#[track_caller]
fn wait_for_queue(set: &SentinelSet, index: usize, length: u64) {
    wait_until("the queue", PATIENCE, || {
        queue_length(set, index) == Some(length)
    });
}

/// How many stand in it; `None` if the server doesn't answer.
fn queue_length(set: &SentinelSet, index: usize) -> Option<u64> {
    let queue = ["LLEN", "{crosslock:n}:queue"];
    set.member(index).try_query(&queue).ok()
}

#[test]
fn locks_outlast_failovers() {
    let set = set();
    // Its lease outlives the failover.
    let holder = builder(&set.url()).ttl(PATIENCE).build().expect("open");
    let guard = held(&holder);
    let waiting = waiting(&open(&set));
    wait_for_queue(&set, 0, 1);
    set.wait_until_settled();
    set.member(0).kill();
    set.wait_for_other_master(0);
    guard.unlock().expect("unlock");
    let (next, _) = waiting.join().expect("no panic");
    next.unlock().expect("unlock");
    assert_works(&holder);
}

#[test]
fn plain_url_is_told_to_use_tls() {
    let set = set();
    let url = set.url().replacen("rediss+", "redis+", 1);
    let url = url.split("?ca=").next().expect("a part");
    let login = format!("{url}?sentinel_password=two");
    for url in [url, &login] {
        let error = Locker::open(url).expect_err("they speak TLS");
        let text = shown(&error);
        assert!(text.contains("has TLS, use rediss+sentinel://"), "{text}");
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
