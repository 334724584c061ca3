//! URLs: what is understood, and what is refused.

use std::path::Path;

use super::*;
use crate::base::error::Error;
use crate::base::random::for_any;

fn reason(url: &str) -> String {
    match parse(url) {
        Err(Error::InvalidUrl { reason, .. }) => reason,
        other => panic!("{url}: {other:?}"),
    }
}

fn hosts(url: &str) -> Vec<String> {
    let hosts = parse(url).unwrap().hosts;
    hosts.iter().map(HostPort::to_string).collect()
}

#[test]
fn every_part_is_understood() {
    let url = "ETCDS://me:p%40ss%3F@a,b:1,[::1]/some/r%20oot/?ca=/c%26&key=k&cert=/x";
    let address = parse(url).unwrap();
    assert_eq!(hosts(url), ["a:2379", "b:1", "[::1]:2379"]);
    assert_eq!(address.login.user.as_deref(), Some("me"));
    assert_eq!(address.login.password.unwrap().as_str(), "p@ss?");
    assert_eq!(address.root, "some/r oot");
    assert_eq!(address.ca.as_deref(), Some(Path::new("/c&")));
    let own = OwnCertificate {
        chain: "/x".into(),
        key: "k".into(),
    };
    assert_eq!(address.own, Some(own));
    assert!(address.tls);
    assert_eq!(address.shown, "etcds://a:2379,b:1,[::1]:2379/some/r oot");
}

#[test]
fn most_may_be_left_out() {
    for url in ["etcd://h", "etcd://h/", "etcd://h/?", "etcd://@h:"] {
        let address = parse(url).unwrap();
        assert_eq!(
            (&*address.root, address.tls, address.ca),
            ("", false, None),
            "{url}"
        );
        assert_eq!(address.login, Login::default());
        assert_eq!(address.shown, "etcd://h:2379");
    }
    let address = parse("etcds://h/root?ca=/c").unwrap();
    assert_eq!((&*address.root, address.own), ("root", None));
}

#[test]
fn parts_that_are_not_understood_are_named() {
    assert!(reason("etcd://h/?timeout=3").contains("`timeout`"));
    assert!(reason("etcd://h/?ca=/x").contains("etcds://"));
    assert!(reason("etcds://h/?ca=/x&ca=/y").contains("ca, cert, key"));
    assert!(reason("etcds://h/?cert=/x").contains("&key="));
    assert!(reason("etcd:///root").contains("host"));
    assert!(reason("etcd://u@h/").contains("password"));
    assert!(reason("etcd://:p@h/").contains("user"));
    assert!(reason("etcd://u:pa/ss@h/").contains("%2F"));
    assert!(reason("etcd://h//").contains("root"));
    assert!(reason("etcd://h/a%00").contains("control"));
    assert!(reason("etcd://h/a%2F").contains("root"));
    assert!(reason("etcd://h/a@b").contains("%40"));
    assert!(reason("etcd://h/#x").contains('#'));
}

#[test]
fn nothing_shows_a_password() {
    for_any(|random| {
        let [before, after] = [(); 2].map(|()| random.text_without(|any| any == 's', 0..=5));
        let host = random.text_of("abcxyz@:/?#%,", 0..=8);
        let shown = match parse(&format!("etcd://user:{before}sssss{after}@{host}")) {
            Ok(address) => format!("{address:?} {}", address.shown),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains("sssss"), "{shown}");
    });
}
