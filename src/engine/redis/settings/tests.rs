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

fn host_and_port(url: &str) -> (String, u16) {
    match parse(url).unwrap().at {
        At::One(Endpoint::Tcp(server)) => (server.host, server.port),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_part_is_understood() {
    let address = parse("redis://me:p%40ss%3F@example.org:1234/7").unwrap();
    assert_eq!(address.login.user.as_deref(), Some("me"));
    assert_eq!(address.login.password.as_ref().unwrap().as_str(), "p@ss?");
    assert_eq!(address.database, 7);
    assert_eq!(address.shown, "redis://example.org:1234/7");
    assert_eq!(
        host_and_port("redis://example.org:1234/7"),
        ("example.org".into(), 1234)
    );
    assert_eq!(host_and_port("redis://[::1]/"), ("::1".into(), 6379));
    assert_eq!(host_and_port("redis://h"), ("h".into(), 6379));
    #[cfg(feature = "tls")]
    {
        let address = parse("rediss://h/?ca=/etc/my%20ca.pem").unwrap();
        assert_eq!(address.ca.unwrap().to_str(), Some("/etc/my ca.pem"));
    }
    let address = parse("redis://:secret@h").unwrap();
    assert_eq!(
        (address.login.user, address.login.password.unwrap().as_str()),
        (None, "secret")
    );
}

#[test]
fn unix_sockets_have_login_and_database_in_the_query() {
    let address = parse("unix:///run/my%20redis.sock?db=3&user=u&pass=p%26q").unwrap();
    assert!(
        matches!(&address.at, At::One(Endpoint::Unix(p)) if p.to_str() == Some("/run/my redis.sock"))
    );
    assert_eq!(
        (address.login.user.as_deref(), address.database),
        (Some("u"), 3)
    );
    assert_eq!(address.login.password.unwrap().as_str(), "p&q");
}

#[test]
fn parts_that_are_not_understood_are_named() {
    for (url, part) in [
        ("redis://h/0?timeout=3", "`timeout`"),
        ("redis://h/0?ca=/x", "`ca`"),
        ("unix:///s?db=1&db=2", "db, user, pass"),
        ("redis://h/x", "database"),
        ("redis://h/99999999999", "database"),
        ("redis://u@h/", "password"),
        ("unix:///s?user=u", "?user="),
        ("redis://:pa/ss@h/", "%2F"),
        ("redis://:p%ss@h/", "%25"),
        ("unix://run/s", "unix:///"),
        ("unix:///..", "unix:///"),
        (&*format!("unix:///{}", "x".repeat(200)), "201 bytes"),
        ("redis+cluster://a/1", "database 0"),
        ("redis+sentinel://a", "mymaster"),
        ("redis+sentinel://a/m?sentinel_username=u", "password"),
        ("redis+cluster://a/?sentinel_password=s", "min_replicas"),
        ("redis+x://a", "+cluster"),
        ("redis://a,b", "redis+cluster://"),
        ("redis://a/?min_replicas=-1", "min_replicas"),
        ("redis://a/?clock_skew=1", "clock_skew"),
    ] {
        assert!(reason(url).contains(part), "{url}: {}", reason(url));
    }
}

#[test]
fn sentinels_know_the_master_of_a_name() {
    let url = "rediss+sentinel://u:p@a,b:1/my%20master/2?sentinel_password=s&min_replicas=1";
    let reason = reason(url);
    assert!(reason.contains("mymaster"), "{reason}");
    let address = parse(&url.replace("%20", "-")).unwrap();
    let At::Sentinels {
        hosts,
        master,
        login,
    } = &address.at
    else {
        panic!("{address:?}")
    };
    let hosts: Vec<_> = hosts.iter().map(HostPort::to_string).collect();
    assert_eq!(
        (hosts.join(","), &**master),
        ("a:26379,b:1".into(), "my-master")
    );
    assert_eq!(login.password.as_ref().unwrap().as_str(), "s");
    assert_eq!(address.login.user.as_deref(), Some("u"));
    assert_eq!(address.shown, "rediss+sentinel://a:26379,b:1/my-master/2");
    assert_eq!(address.given.min_replicas, Some(1));
    assert!(address.tls && address.database == 2);
}

#[test]
fn cluster_is_named_by_some_of_its_nodes() {
    let address =
        parse("valkey+cluster://a:7000,[::1]/?clock_skew=20ms&replica_timeout=1s").unwrap();
    assert_eq!(address.shown, "valkey+cluster://a:7000,[::1]:6379");
    assert_eq!(address.given.clock_skew, Some(Duration::from_millis(20)));
    assert_eq!(address.given.replica_timeout, Some(Duration::from_secs(1)));
}

#[test]
fn password_that_is_not_escaped_is_in_no_error() {
    for url in [
        "redis://user:?secret",
        "redis://:?secret",
        "redis://user:12?secret",
        "redis+sentinel://user:?secret@h/m",
        "valkeys://user:pa?secret",
        "redis+cluster://user:12,34?secret=1",
        "redis+sentinel://user:12/m?secret=1",
        "redis+sentinel://h/m?sentinel_password=a&secret",
        "redis+sentinel://h/m?sentinel_password=a&secret=b",
        "rediss+sentinel://h/m?sentinel_username=u&sentinel_password=a&bsecret",
        "redis+sentinel://u:12/secret@h/0",
        "redis+cluster://u:12/secret@h",
        "redis+cluster://u:12?secret@h",
        "unix:///s?pass=12&secret=1",
    ] {
        let error = parse(url).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret"), "{url}: {shown}");
    }
    // A key that is mistyped is told, and so is any where no password can have parted the URL.
    for (url, key) in [
        ("redis://h:1?min_replica=1", "min_replica`"),
        ("redis://h:1/?min_replicass=1", "min_replicass`"),
        ("redis+cluster://a:1,b:2?clockskew=1s", "clockskew`"),
        ("redis://h?other=1", "other`"),
        ("redis://[::1]:1?other=1", "other`"),
    ] {
        assert!(reason(url).contains(key), "{url}: {}", reason(url));
    }
}

#[test]
fn no_error_shows_a_password_also_where_the_host_was_forgotten() {
    for_any(|random| {
        let scheme = random.one_of(&["redis", "rediss", "redis+sentinel", "redis+cluster"]);
        let user = random.text_of("abc", 0..=3);
        let before = random.text_of("0129a/&=,?", 0..=5);
        let behind = random.text_of("019/&=,", 0..=5);
        let [first, last] = [(); 2].map(|()| random.text_without(|any| any == 's', 0..=5));
        let host = random.text_of("abcxyz@:/?#%", 0..=8);
        for url in [
            format!("{scheme}://{user}:{before}?{behind}sssss{behind}=1"),
            format!("{scheme}://{user}:{first}sssss{last}@{host}/0/x"),
            format!("unix:///{host}?pass={first}sssss{last}&nonsense=1"),
        ] {
            if let Err(error) = parse(&url) {
                let shown = format!("{error} {error:?}");
                assert!(!shown.contains("sssss"), "{url}: {shown}");
            }
        }
    });
}
