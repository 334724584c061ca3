//! Sentinels and servers that all speak TLS, and want passwords.

use super::*;

#[test]
fn locks_outlast_a_failover_and_a_plain_url_is_told_to_use_tls() {
    let setup = Setup::new().password("s3cr3t-p4ssw0rd");
    let set = setup.sentinel_password("two").tls().sentinels();
    let url = set.url().replacen("rediss+", "redis+", 1);
    let url = url.split("?ca=").next().expect("a part");
    for url in [url, &format!("{url}?sentinel_password=two")] {
        let text = shown(&Locker::open(url).expect_err("they speak TLS"));
        assert!(text.contains("has TLS, use rediss+sentinel://"), "{text}");
        assert!(!text.contains("s3cr3t"), "{text}");
    }
    // Its lease outlives the failover.
    let holder = builder(&set.url()).ttl(PATIENCE).build().expect("open");
    let guard = held(&holder);
    let waiting = waiting(&open(&set));
    wait_until("one to wait", PATIENCE, || {
        holder.inspect(NAME).expect("inspect").waiters.len() == 1
    });
    set.wait_until_settled();
    set.member(0).kill();
    set.wait_for_other_master(0);
    guard.unlock().expect("unlock");
    let (next, _) = waiting.join().expect("no panic");
    next.unlock().expect("unlock");
    assert_works(&holder);
}
