//! Passwords and access rules.

use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker, LostReason};

use super::support::{Fault, Proxy, RedisServer, wait_until};
use super::*;

const PASSWORD: &str = "s3cr3t-p4ssw0rd";

#[track_caller]
fn assert_denied(error: &Error, place: &str) {
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let text = shown(error);
    assert!(error.to_string().contains(place), "{place}: {text}");
    assert!(!text.contains(PASSWORD), "{text}");
}

// Passwords

#[test]
fn wrong_or_missing_password_is_denied_and_not_shown() {
    let server = RedisServer::builder().password("another").start();
    let place = server.addr().to_string();
    let with = |credentials: &str| server.url_as(credentials);
    for url in [
        with(&format!(":{PASSWORD}")),
        with(&format!("default:{PASSWORD}")),
        with(&format!("nobody:{PASSWORD}")),
        server.url(),
    ] {
        let error = within(millis(100), || Locker::open(&url)).unwrap_err();
        assert_denied(&error, &place);
    }
    Locker::open(&with(":another")).unwrap();
    assert_no_clients(&server);
}

#[test]
fn password_to_a_server_without_one_is_denied_and_not_shown() {
    let server = RedisServer::start();
    let error = Locker::open(&server.url_as(&format!(":{PASSWORD}"))).unwrap_err();
    assert_denied(&error, &server.addr().to_string());
    assert_no_clients(&server);
}

#[test]
fn password_with_special_characters_is_decoded() {
    let server = RedisServer::builder().password("p@ss:w/rd?#%").start();
    let locker = Locker::open(&server.url_as(":p%40ss%3Aw%2Frd%3F%23%25")).unwrap();
    assert_works(&locker);
}

#[test]
fn password_is_in_no_debug_output() {
    let server = RedisServer::builder().password(PASSWORD).start();
    let url = server.url_as(&format!(":{PASSWORD}"));
    let builder = Locker::builder(&url);
    assert!(!format!("{builder:?}").contains(PASSWORD));
    let locker = builder.build().unwrap();
    assert!(!format!("{locker:?}").contains(PASSWORD));
    let guard = held(&locker);
    assert!(!format!("{guard:?}").contains(PASSWORD));
}

#[test]
fn password_that_is_changed_meanwhile_is_denied_to_new_connections() {
    let server = RedisServer::builder().password("old").start();
    let locker = Locker::open(&server.url_as(":old")).unwrap();
    assert_works(&locker);
    server.query::<()>(&["CONFIG", "SET", "requirepass", "new"]);
    server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = within(millis(100), || locker.lock(NAME)).unwrap_err();
    assert_denied(&error, &server.addr().to_string());
}

// Rights

/// What the documentation names as enough.
const COMMANDS: [&str; 9] = [
    "eval", "evalsha", "get", "set", "pexpire", "pttl", "del", "time", "ping",
];

/// The rule of a user who may do all of it but `without`.
fn user(name: &str, keys: &str, without: Option<&str>) -> String {
    let rights: String = COMMANDS
        .iter()
        .filter(|command| Some(**command) != without)
        .map(|command| format!(" +{command}"))
        .collect();
    format!("user {name} on >{PASSWORD} {keys} resetchannels -@all{rights}")
}

fn server_with(users: &[String]) -> RedisServer {
    let rules: Vec<_> = users.iter().map(String::as_str).collect();
    RedisServer::builder().acl(&rules).start()
}

fn url_of(server: &RedisServer, name: &str) -> String {
    server.url_as(&format!("{name}:{PASSWORD}"))
}

const OURS: &str = "~{crosslock:*";

#[test]
fn documented_rights_are_enough_for_everything() {
    let server = server_with(&[user("app", OURS, None)]);
    let proxy = Proxy::start(server.addr());
    let url = url_of(&server, "app").replace(&server.addr().to_string(), &proxy.addr().to_string());
    let builder = Locker::builder(&url)
        .ttl(millis(3_000))
        .io_timeout(millis(500));
    let locker = builder.renew_every(millis(100)).build().unwrap();
    for round in 0..2 {
        let guard = held(&locker);
        assert!(locker.try_lock(NAME).unwrap().is_none());
        assert!(locker.try_lock_for(NAME, millis(30)).unwrap().is_none());
        wait_for_renewal(&guard);
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert_released(&server);
        // The second round uses scripts that the server has forgotten.
        server.query::<()>(&["SCRIPT", "FLUSH"]);
        if round == 1 {
            load_scripts(&server);
        }
    }
    for then_close in [true, false] {
        proxy.lose_next_reply(&digest(ACQUIRE), then_close);
        let guard = locker.lock(NAME).unwrap();
        guard.unlock().unwrap();
        assert_released(&server);
    }
    assert_eq!(proxy.lost_replies(), 2);
    proxy.set(Fault::LoseReply { then_close: true });
    let error = locker.try_lock(NAME).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    wait_until("the release", PATIENCE, || server.get(LOCK).is_none());
    drop(locker);
    assert_no_clients(&server);
    let denied: Vec<String> = server.query(&["ACL", "LOG"]);
    assert!(denied.is_empty(), "{denied:?}");
}

/// The call that a missing right makes fail.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Open,
    Lock,
    /// `try_lock` of a lock that is taken.
    Contend,
    Verify,
    Renew,
    Unlock,
}

/// Each right, and the first call that is denied without it.
const NEEDED_BY: [(&str, Call); COMMANDS.len()] = [
    ("ping", Call::Open),
    ("evalsha", Call::Lock),
    ("eval", Call::Lock),
    ("get", Call::Lock),
    ("set", Call::Lock),
    ("time", Call::Lock),
    ("pttl", Call::Contend),
    ("pexpire", Call::Renew),
    ("del", Call::Unlock),
];

const TTL: Duration = millis(1_500);

/// Does everything once, and returns the first call that fails.
fn first_failure(server: &RedisServer, user: &str) -> Option<(Call, Error)> {
    let builder = Locker::builder(&url_of(server, user)).ttl(TTL);
    let locker = match within(millis(100), || builder.renew_every(millis(100)).build()) {
        Ok(locker) => locker,
        Err(error) => return Some((Call::Open, error)),
    };
    let guard = match within(millis(100), || locker.lock(NAME)) {
        Ok(guard) => guard,
        Err(error) => return Some((Call::Lock, error)),
    };
    match within(millis(100), || locker.try_lock("taken")) {
        Ok(other) => assert!(other.is_none()),
        Err(error) => return Some((Call::Contend, error)),
    }
    use_and_release(guard)
}

fn use_and_release(guard: LockGuard) -> Option<(Call, Error)> {
    if let Err(error) = guard.verify() {
        return Some((Call::Verify, error));
    }
    let end = Instant::now() + guard.remaining();
    wait_until("a renewal, or the end of the lease", PATIENCE, || {
        !guard.is_held() || Instant::now() + guard.remaining() > end + millis(1)
    });
    if let Err(error) = guard.check() {
        let lost = guard.lost().recv().unwrap();
        assert_eq!(lost.reason, LostReason::Expired, "nobody else took it");
        return Some((Call::Renew, error));
    }
    let error = within(RELEASE, || guard.unlock()).err()?;
    Some((Call::Unlock, error))
}

#[test]
fn each_right_is_needed_by_the_call_that_says_so() {
    let users = COMMANDS.map(|right| user(&format!("no-{right}"), OURS, Some(right)));
    let server = server_with(&users);
    for (right, call) in NEEDED_BY {
        // Without `eval` a script still runs that the server knows.
        server.query::<()>(&["FLUSHALL"]);
        server.query::<()>(&["SCRIPT", "FLUSH"]);
        server.query::<()>(&["SET", "{crosslock:taken}", "theirs", "PX", "60000"]);
        let (failed, error) = first_failure(&server, &format!("no-{right}"))
            .unwrap_or_else(|| panic!("{right} isn't needed"));
        assert_eq!(failed, call, "{right}: {error}");
        if call == Call::Renew {
            assert!(matches!(error, Error::Lost { .. }), "{right}: {error}");
        } else {
            assert_denied(&error, &server.addr().to_string());
        }
        assert_every_key_expires(&server);
        if call == Call::Lock {
            assert_eq!(server.get(LOCK), None, "{right}");
        }
        wait_until("the lease to end", TTL + SLACK, || {
            server.get(LOCK).is_none()
        });
        assert_no_clients(&server);
    }
}

#[test]
fn lock_that_was_denied_leaves_no_trace_for_the_next_holder() {
    let mut users: Vec<_> = ["get", "set", "time"]
        .map(|right| user(&format!("no-{right}"), OURS, Some(right)))
        .into();
    users.push(user("app", OURS, None));
    let server = server_with(&users);
    let app = open(&url_of(&server, "app"));
    for clean_before in [false, true] {
        for right in ["get", "set", "time"] {
            server.query::<()>(&["FLUSHALL"]);
            if clean_before {
                assert_works(&app);
            }
            let locker = open(&url_of(&server, &format!("no-{right}")));
            locker.lock(NAME).unwrap_err();
            let guard = held(&app);
            assert!(!guard.abandoned(), "without {right} nobody held it");
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
fn user_without_rights_on_the_keys_is_denied() {
    let server = server_with(&[
        user("none", "resetkeys", None),
        user("other", "~{other:*", None),
        user("lock-only", "~{crosslock:n}", None),
        user("fence-only", "~{crosslock:n}:fence", None),
    ]);
    let place = server.addr().to_string();
    for name in ["none", "other", "lock-only", "fence-only"] {
        let locker = open(&url_of(&server, name));
        for outcome in [
            within(millis(100), || locker.lock(NAME)).map(Some),
            within(millis(100), || locker.try_lock(NAME)),
            within(millis(100), || locker.try_lock_for(NAME, LONG)),
        ] {
            let error = outcome.unwrap_err();
            assert_denied(&error, &place);
            assert!(error.to_string().contains("\"n\""), "{error}");
        }
        assert_every_key_expires(&server);
        assert_eq!(server.get(LOCK), None, "{name}");
    }
    let other = open(&url_of(&server, "other")).namespace("other").unwrap();
    assert_works(&other);
    drop(other);
    assert_no_clients(&server);
}

#[test]
fn database_without_the_right_to_select_is_denied() {
    let server = server_with(&[user("app", OURS, None)]);
    let error = Locker::open(&format!("{}1", url_of(&server, "app"))).unwrap_err();
    assert_denied(&error, &server.addr().to_string());
    assert!(error.to_string().contains("select"), "{error}");
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
