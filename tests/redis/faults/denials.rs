//! What calls leave that were denied midway.

use crosslock::{Error, Locker, LostReason};

use super::rights::{OURS, TTL, assert_denied, server_with, url_of, user};
use super::*;
use support::{Proxy, wait_until};

/// A server with a user for each right, who has all but that, and a locker of one who has all.
fn server_that_denies<const N: usize>(rights: [&str; N]) -> (RedisServer, Locker) {
    let mut users: Vec<_> = rights
        .map(|right| user(&format!("no-{right}"), OURS, Some(right)))
        .into();
    users.push(user("app", OURS, None));
    let server = server_with(&users);
    let app = open(&url_of(&server, "app"));
    (server, app)
}

#[test]
fn waiter_that_was_denied_leaves_nothing() {
    let rights = ["lindex", "llen", "rpush", "hset"];
    let (server, app) = server_that_denies(rights);
    for right in rights {
        let guard = held(&app);
        // Some are needed by its first heartbeat, after a third of the ttl.
        let denied = Locker::builder(&url_of(&server, &format!("no-{right}"))).ttl(TTL);
        let denied = denied.build().unwrap();
        let error = within(TTL / 3, || denied.lock(NAME)).unwrap_err();
        assert_denied(&error, &server.addr().to_string());
        assert_nobody_waits(&server);
        guard.unlock().unwrap();
        assert_released(&server);
    }
}

#[test]
fn script_that_is_denied_midway_leaves_no_key_for_ever() {
    let rights = ["lindex", "llen", "rpush"];
    let users = rights.map(|right| user(&format!("no-{right}"), OURS, Some(right)));
    let server = server_with(&users);
    for right in rights {
        server.query::<()>(&["FLUSHALL"]);
        server.query::<()>(&["SET", LOCK, "theirs", "PX", "60000"]);
        let client = redis::Client::open(url_of(&server, &format!("no-{right}"))).unwrap();
        let mut enter = redis::cmd("EVAL");
        enter.arg(whole(ACQUIRE)).arg(6);
        enter.arg(&[LOCK, FENCE, QUEUE, WAITERS, READERS, HOLDERS]);
        enter.arg(&["owner", "10000", "x", "5000", ""]);
        let mut connection = client.get_connection().unwrap();
        // It enters the line, and sends a heartbeat.
        let asked = [(); 2].map(|()| enter.exec(&mut connection));
        assert!(asked.iter().any(Result::is_err), "{right} isn't needed");
        for key in server.keys() {
            assert_ne!(server.pttl(&key), -1, "{key} without {right}");
        }
    }
}

#[test]
fn lock_that_was_denied_leaves_no_trace_for_the_next_holder() {
    let rights = ["set", "time", "exists"];
    let (server, app) = server_that_denies(rights);
    for clean_before in [false, true] {
        for right in rights {
            server.query::<()>(&["FLUSHALL"]);
            if clean_before {
                assert_works(&app);
            }
            if clean_before && right == "exists" {
                // The counter says that nobody waits.
                continue;
            }
            let locker = open(&url_of(&server, &format!("no-{right}")));
            locker.lock(NAME).unwrap_err();
            let guard = held(&app);
            assert!(!guard.was_abandoned(), "without {right} nobody held it");
        }
    }
}

#[test]
fn repeated_acquire_without_the_right_to_renew_is_denied_and_released() {
    let server = server_with(&[user("app", OURS, Some("pexpire"))]);
    load_scripts(&server);
    let proxy = Proxy::start(server.addr());
    let url = url_of(&server, "app").replace(&server.addr().to_string(), &proxy.addr().to_string());
    let locker = open(&url);
    proxy.lose_next_reply(&digest(ACQUIRE), true);
    let error = within(millis(100), || locker.lock(NAME)).unwrap_err();
    assert_denied(&error, &proxy.addr().to_string());
    assert_released(&server);
}

#[test]
fn user_who_is_denied_while_holding_ends_in_time() {
    let server = server_with(&[user("app", OURS, None)]);
    let builder = Locker::builder(&url_of(&server, "app")).ttl(TTL);
    let locker = builder.renew_every(millis(100)).build().unwrap();
    let guard = held(&locker);
    server.query::<()>(&["ACL", "SETUSER", "app", "-@all"]);
    let lost = guard.lost().recv_timeout(PATIENCE).unwrap();
    assert_eq!(lost.reason, LostReason::Expired);
    let error = within(RELEASE, || guard.unlock()).unwrap_err();
    assert!(
        matches!(error, Error::Denied { .. } | Error::Lost { .. }),
        "{error}"
    );
    wait_until("the lease to end", PATIENCE, || server.get(LOCK).is_none());
}
