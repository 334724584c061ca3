//! Sentinels and servers that all speak TLS, and want passwords.

use super::*;
use support::Stopwatch;

fn set() -> SentinelSet {
    let setup = Setup::new().password("s3cr3t-p4ssw0rd");
    setup.sentinel_password("two").tls().sentinels()
}

/// Takes, renews, waits for and hands off locks of each kind, as other tests do on one server.
fn assert_all_works(set: &SentinelSet) {
    let [locker, other] = [(); 2].map(|()| open(set));
    let guard = held(&locker);
    assert!(other.try_lock(NAME).expect("try_lock").is_none());
    let waiting = waiting(&other);
    wait_for_queue(set, set.master(), 1);
    let first = guard.fencing_token();
    let watch = Stopwatch::start();
    let released = Instant::now();
    guard.unlock().expect("unlock");
    let (next, got) = waiting.join().expect("no panic");
    watch.assert_took(got.saturating_duration_since(released), TTL / 3);
    assert!(next.fencing_token() > first);
    let before = next.remaining();
    wait_until("a renewal", PATIENCE, || {
        thread::sleep(millis(20));
        next.remaining() > before
    });
    next.verify().expect("verify");
    assert_eq!(locker.break_lock(NAME).expect("break").len(), 1);
    assert!(next.unlock().is_err());
    let readers = [&locker, &other].map(|locker| locker.read(NAME).expect("read"));
    assert!(locker.try_write(NAME).expect("try_write").is_none());
    drop(readers);
    let several = locker.lock_all(&["a", "b", NAME]).expect("lock_all");
    assert_eq!(locker.list("").expect("list").count(), 3);
    several.unlock().expect("unlock");
    #[cfg(feature = "value")]
    {
        let count = locker.mutex("count", 0u64).expect("mutex");
        let counted = count.update(|count| *count += 1);
        counted.expect("update");
    }
}

#[test]
fn locks_are_handed_off_and_outlast_failovers() {
    let set = set();
    assert_all_works(&set);
    let (holder, waiter) = (open(&set), open(&set));
    let guard = held(&holder);
    let waiting = waiting(&waiter);
    wait_for_queue(&set, 0, 1);
    set.wait_until_settled();
    set.member(0).kill();
    set.wait_for_other_master(0);
    guard.unlock().expect("unlock");
    let (next, _) = waiting.join().expect("no panic");
    next.unlock().expect("unlock");
    assert_all_works(&set);
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

#[test]
fn tls_url_is_refused_where_nobody_speaks_tls() {
    let set = SentinelSet::start();
    let url = set.url().replacen("redis+", "rediss+", 1);
    let error = Locker::open(&url).expect_err("they speak no TLS");
    assert!(shown(&error).contains("no sentinel tells"), "{error}");
}
