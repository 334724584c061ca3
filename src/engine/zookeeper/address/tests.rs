//! URLs: what is understood, and what is refused.

use super::*;
use crate::base::error::Error;
use crate::base::random::for_any;

fn reason(url: &str) -> String {
    match parse(url) {
        Err(Error::InvalidUrl { reason, .. }) => reason,
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn every_part_is_understood() {
    let url = "zk://a:1,[::1],b/locks/%C3%A9%20b?auth=digest:me:p%26q:r&tick=500ms";
    let address = parse(url).unwrap();
    let hosts: Vec<_> = address.hosts.iter().map(HostPort::to_string).collect();
    assert_eq!(hosts, ["a:1", "[::1]:2181", "b:2181"]);
    assert_eq!(address.chroot, "/locks/é b");
    let auth = address.auth.unwrap();
    assert_eq!(auth.scheme, "digest");
    assert_eq!(auth.credentials.as_str(), "me:p&q:r");
    assert_eq!(address.tick, Some(Duration::from_millis(500)));
    assert_eq!(address.shown, "zk://a:1,[::1]:2181,b:2181/locks/é b");
}

#[test]
fn certificates_are_of_encrypted_connections() {
    let address = parse("zks://a,b:1/c?ca=/ca.pem&cert=/own.pem&key=/own.key&tick=1s").unwrap();
    assert!(address.tls);
    assert_eq!(address.shown, "zks://a:2281,b:1/c");
    assert_eq!(address.ca, Some(PathBuf::from("/ca.pem")));
    let own = address.own.unwrap();
    assert_eq!((own.chain, own.key), ("/own.pem".into(), "/own.key".into()));
}

#[test]
fn parts_that_are_not_understood_are_named() {
    for (url, expected) in [
        ("zk:", "host"),
        ("zk:///a", "host"),
        ("zk://u:p@h", "?auth="),
        ("zk://u:p/q@h", "?auth="),
        ("zk://h/a@b", "%40"),
        ("zk://h//a", "empty part"),
        ("zk://h/../b", ".."),
        ("zk://h/./b", ".."),
        ("zk://h/a%2Fb", "character"),
        ("zk://h/a%00b", "character"),
        ("zk://h/%EF%BF%BE", "character"),
        ("zk://h/zookeeper", "servers"),
        ("zks://h?cert=/own.pem", "belong together"),
        ("zk://h?ca=/ca.pem", "zks://"),
        ("zk://h?auth=digest:me", "digest:user:password"),
        ("zk://h?auth=digest::p", "digest:user:password"),
        ("zk://h?auth=:me:p", "digest:user:password"),
        ("zk://h?tick=1", "tick"),
        ("zk://h?ttl=1s", "`ttl`"),
        ("zk://h?tick=1s&tick=1s", "`tick`"),
    ] {
        let found = reason(url);
        assert!(found.contains(expected), "{url}: {found}");
    }
}

#[test]
fn no_error_or_debug_output_shows_a_password() {
    for_any(|random| {
        let [before, after] = [(); 2].map(|()| random.text_without(|any| any == 's', 0..=5));
        let host = random.text_of("abcxyz@:/?#%,", 0..=8);
        for url in [
            format!("zk://{host}?auth=digest:me:{before}sssss{after}"),
            format!("zk://me:{before}sssss{after}@{host}"),
            format!("zk://{host}?auth=digest:me:p&{before}sssss{after}"),
            // Its key is missing.
            format!("zk://h/?a=1&digest:me:{before}sssss{after}"),
        ] {
            let parsed = parse(&url);
            let shown = format!(
                "{parsed:?} {}",
                match &parsed {
                    Ok(address) => address.shown.clone(),
                    Err(error) => error.to_string(),
                }
            );
            assert!(!shown.contains("sssss"), "{shown}");
        }
    });
}
