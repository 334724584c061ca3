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
fn master_that_wants_more_replicas_is_unavailable_until_they_are_there() {
    let set = Setup::new()
        .config("min-replicas-to-write", "1")
        .replicated(1);
    let locker = open(&set, 1);
    held(&locker).unlock().unwrap();
    set.member(0)
        .query::<()>(&["CONFIG", "SET", "min-replicas-to-write", "2"]);
    let error = locker.try_lock(NAME).unwrap_err();
    assert!(shown(&error).contains("NOREPLICAS"), "{}", shown(&error));
    set.member(0)
        .query::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    locker.lock(NAME).unwrap().unlock().unwrap();
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
fn options_out_of_range_are_named() {
    let set = Replicated::start(0);
    for (parameter, option) in [
        ("clock_skew=2501ms", "clock_skew"),
        ("replica_timeout=9ms", "replica_timeout"),
        ("replica_timeout=61s", "replica_timeout"),
    ] {
        let error = Locker::open(&format!("{}?{parameter}", set.url(0))).unwrap_err();
        assert!(
            matches!(error, Error::InvalidOption { option: named, .. } if named == option),
            "{parameter}: {error}"
        );
    }
    let with_ttl = |ttl, parameter: &str| {
        let url = format!("{}?{parameter}", set.url(0));
        Locker::builder(&url).ttl(ttl).build()
    };
    assert!(with_ttl(millis(100), "clock_skew=26ms").is_err());
    with_ttl(millis(100), "clock_skew=25ms&replica_timeout=10ms").unwrap();
    with_ttl(LONG, "clock_skew=15s&replica_timeout=60s").unwrap();
}
