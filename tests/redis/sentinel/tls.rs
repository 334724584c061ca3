//! Sentinels and servers that all speak TLS, and want passwords.

use super::*;

#[test]
fn plain_url_is_told_to_use_tls() {
    let setup = Setup::new().password("s3cr3t-p4ssw0rd");
    let set = setup.sentinel_password("two").tls().sentinels();
    let url = set.url().replacen("rediss+", "redis+", 1);
    let url = url.split("?ca=").next().expect("a part");
    for url in [url, &format!("{url}?sentinel_password=two")] {
        let text = shown(&Locker::open(url).expect_err("they speak TLS"));
        assert!(text.contains("has TLS, use rediss+sentinel://"), "{text}");
        assert!(!text.contains("s3cr3t"), "{text}");
    }
    assert_works(&open(&set));
}
