//! What is told when the URL of sentinels is opened.

use super::*;
use support::{BlackHole, RedisServer};

const PASSWORD: &str = "s3cr3t-p4ssw0rd";

#[track_caller]
fn refused(url: &str, words: &[&str]) -> Error {
    let found = Locker::open(url);
    let error = found.expect_err("it is refused");
    let text = shown(&error);
    for word in words {
        assert!(text.contains(word), "{word:?} isn't in {text}");
    }
    assert!(!text.contains(PASSWORD), "{text}");
    error
}

#[test]
fn unreachable_sentinels_are_named() {
    let (hole, down) = (BlackHole::start(), RedisServer::start());
    down.kill();
    let [hole, down] = [hole.addr(), down.addr()].map(|addr| addr.to_string());
    let url = format!("redis+sentinel://:{PASSWORD}@{hole},{down}/mymaster");
    let error = refused(&url, &["no sentinel reports", &down, "in time"]);
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
}

#[test]
fn wrong_names_and_servers_and_passwords_are_told() {
    let setup = Setup::new().password(PASSWORD).sentinel_password("two");
    let set = setup.sentinels();
    let url = set.url();
    let error = refused(
        &url.replace("mymaster", "other"),
        &["other", "they know mymaster"],
    );
    assert!(matches!(error, Error::InvalidUrl { .. }), "{error}");
    for wrong in [
        url.replace("sentinel_password=two", "sentinel_password=wrong"),
        url.replace(&format!(":{PASSWORD}@"), ":wrong@"),
        url.split('?').next().expect("a part").to_owned(),
    ] {
        let error = refused(&wrong, &["mymaster"]);
        assert!(matches!(error, Error::Denied { .. }), "{wrong}: {error}");
    }
    let server = RedisServer::start();
    let error = refused(
        &format!("redis+sentinel://{}/mymaster", server.addr()),
        &[&format!("use {}0", server.url())],
    );
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert_works(&builder(&url).build().expect("open"));
}

#[test]
fn documented_rights_are_enough() {
    let page = include_str!("../../../docs/sentinel.md");
    let page = page.replace("\n  +", " +");
    let lines = page
        .lines()
        .filter_map(|line| line.strip_prefix("ACL SETUSER "));
    let [server, sentinel] = &lines.map(|line| format!("user {line}")).collect::<Vec<_>>()[..]
    else {
        panic!("one rule for servers, one for sentinels")
    };
    let setup = Setup::new().acl(&[server]).sentinel_acl(&[sentinel]);
    let set = setup.sentinels();
    let login = "sentinel_username=app&sentinel_password=password";
    let url = format!(
        "redis+sentinel://app:password@{}/mymaster?{login}",
        set.hosts()
    );
    let locker = builder(&url).build().expect("open");
    let guard = held(&locker);
    let waiting = waiting(&locker);
    drop(guard);
    drop(waiting.join().expect("no panic"));
    set.failover();
    assert_works(&locker);
}
