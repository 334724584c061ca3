//! What a user may not do, a server doesn't have, and options that make no sense.

use support::{RedisServer, Setup};

use super::*;

#[test]
fn user_without_wait_is_told_of_it_and_has_nothing() {
    let acl = ["user lock on >secret ~* &* +@all -wait"];
    let set = Setup::new().acl(&acl).replicated(1);
    let url = format!("redis://lock:secret@{}/", set.member(0).public_addr());
    let locker = Locker::builder(&url).min_replicas(1).build().unwrap();
    let error = locker.try_lock(NAME).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(shown(&error).contains("+wait"), "{}", shown(&error));
    assert_released(&set, 0);
    held(&Locker::open(&url).unwrap()).unlock().unwrap();
}

#[test]
fn server_without_wait_is_no_outage() {
    let server = RedisServer::builder().config("rename-command", "WAIT \"\"");
    let server = server.start();
    let locker = Locker::builder(&server.url()).min_replicas(1);
    let error = locker.build().unwrap().try_lock(NAME).unwrap_err();
    assert!(matches!(error, Error::Engine { .. }), "{error}");
    assert!(shown(&error).contains("WAIT"), "{}", shown(&error));
    wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
}

#[test]
fn options_of_the_url_go_before_those_of_the_builder() {
    let set = Replicated::start(1);
    stop_replicas(&set);
    let url = |parameters: &str| format!("{}?{parameters}", set.url(0));
    let open = |parameters: &str, replicas| {
        let builder = Locker::builder(&url(parameters)).min_replicas(replicas);
        builder.build().unwrap()
    };
    let replica_timeout = "replica_timeout=50ms";
    let one = format!("min_replicas=1&{replica_timeout}");
    for locker in [open(&one, 0), open(replica_timeout, 1)] {
        assert_too_few(&locker.try_lock(NAME).unwrap_err());
    }
    assert_released(&set, 0);
    held(&open("min_replicas=0", 1)).unlock().unwrap();
}

#[test]
fn allowance_for_clocks_is_a_quarter_of_the_ttl_at_most() {
    let server = RedisServer::start();
    let with = |parameters: &str| {
        let url = format!("{}?{parameters}", server.url());
        Locker::builder(&url).ttl(millis(100)).build()
    };
    with("clock_skew=25ms&replica_timeout=10ms").expect("open");
    for (parameter, wrong) in [
        ("clock_skew=26ms", "clock_skew"),
        ("replica_timeout=9ms", "replica_timeout"),
        ("replica_timeout=61s", "replica_timeout"),
    ] {
        let error = with(parameter).expect_err(parameter);
        let named = matches!(error, Error::InvalidOption { option, .. } if option == wrong);
        assert!(named, "{parameter}: {error}");
    }
}
