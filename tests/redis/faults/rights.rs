//! Users with few rights, or with the wrong password.

use std::thread;

use crosslock::{Error, Locker};
use redis::Value;

use super::*;
use support::RedisServer;

pub(crate) const PASSWORD: &str = "s3cr3t-p4ssw0rd";

#[track_caller]
pub(crate) fn assert_denied(error: &Error, place: &str) {
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let text = shown(error);
    assert!(error.to_string().contains(place), "{place}: {text}");
    assert!(!text.contains(PASSWORD), "{text}");
}

const PAGE: &str = include_str!("../../../docs/redis.md");

/// What the documentation names as enough: keys and channels.
pub(crate) const OURS: &str = "~{crosslock:* resetchannels &crosslock:inbox:*";

/// And commands.
fn commands() -> impl Iterator<Item = &'static str> {
    let (before, rule) = PAGE.split_once(" -@all\n").expect("a rule");
    assert!(before.ends_with(OURS), "{before}");
    let words = rule
        .split_once("```")
        .expect("it ends")
        .0
        .split_whitespace();
    words.map(|word| word.strip_prefix('+').expect("a right"))
}

/// The rule of a user who may do all of it to `scope`, but `without`.
pub(crate) fn user(name: &str, scope: &str, without: Option<&str>) -> String {
    let rights = commands().filter(|command| Some(*command) != without);
    let rights: String = rights.map(|command| format!(" +{command}")).collect();
    format!("user {name} on >{PASSWORD} {scope} -@all{rights}")
}

pub(crate) fn server_with(users: &[String]) -> RedisServer {
    let rules: Vec<_> = users.iter().map(String::as_str).collect();
    RedisServer::builder().acl(&rules).start()
}

pub(crate) fn url_of(server: &RedisServer, name: &str) -> String {
    server.url_as(&format!("{name}:{PASSWORD}"))
}

/// What the server has refused since it was asked the last time.
pub(crate) fn denials(server: &RedisServer) -> Vec<Value> {
    let denied = server.query(&["ACL", "LOG"]);
    server.query::<()>(&["ACL", "LOG", "RESET"]);
    denied
}

#[test]
fn documented_rights_are_enough_for_everything() {
    let server = server_with(&[user("app", OURS, None)]);
    let builder = Locker::builder(&url_of(&server, "app")).ttl(millis(3_000));
    let builder = builder.renew_every(millis(100));
    let [locker, other] = [(); 2].map(|()| builder.clone().build().unwrap());
    for _ in 0..2 {
        let guard = held(&locker);
        assert!(other.try_lock(NAME).unwrap().is_none());
        wait_for_renewal(&guard);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| other.lock(NAME).unwrap());
            wait_for_line(&server, 1);
            guard.verify().unwrap();
            guard.unlock().unwrap();
            waiter.join().unwrap().unlock().unwrap();
        });
        assert_released(&server);
        let both = [&locker, &other].map(|lock| lock.read(NAME).unwrap());
        both.into_iter().for_each(|guard| guard.unlock().unwrap());
        let semaphore = locker.semaphore(NAME, 2).unwrap();
        semaphore.acquire().unwrap().unlock().unwrap();
        let _guard = locker.lock_all(&[NAME, "m"]).unwrap();
        assert_eq!(locker.list("").unwrap().count(), 2);
        assert_eq!(locker.inspect(NAME).unwrap().holders.len(), 1);
        assert_eq!(locker.break_lock("m").unwrap().len(), 1);
        // The second round uses scripts that the server has forgotten.
        server.query::<()>(&["SCRIPT", "FLUSH"]);
    }
    let denied = denials(&server);
    assert!(denied.is_empty(), "{denied:?}");
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
        let error = open(&url_of(&server, name)).lock(NAME).unwrap_err();
        assert_denied(&error, &place);
        assert!(error.to_string().contains("\"n\""), "{error}");
        assert_eq!(server.keys(), [""; 0], "{name}");
    }
    let other = open(&url_of(&server, "other"));
    assert_works(&other.with_namespace("other").unwrap());
}

#[test]
fn database_without_the_right_to_select_is_denied() {
    let server = server_with(&[user("app", OURS, None)]);
    let error = Locker::open(&format!("{}1", url_of(&server, "app"))).unwrap_err();
    assert_denied(&error, &server.addr().to_string());
    assert!(shown(&error).contains("select"), "{error}");
}

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
        let error = Locker::open(&url).unwrap_err();
        assert_denied(&error, &place);
    }
    let locker = Locker::open(&with(":another")).unwrap();
    // It is changed meanwhile.
    server.query::<()>(&["CONFIG", "SET", "requirepass", "new"]);
    server.query::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = locker.lock(NAME).unwrap_err();
    assert_denied(&error, &place);
    drop(locker);
    assert_no_clients(&server);
    let server = RedisServer::start();
    let error = Locker::open(&server.url_as(&format!(":{PASSWORD}"))).unwrap_err();
    assert_denied(&error, &server.addr().to_string());
    assert_no_clients(&server);
}

#[test]
fn error_of_an_outage_says_what_to_do_and_leaves_its_cause_to_source() {
    let server = RedisServer::builder().password(PASSWORD).start();
    let url = server.url_as(&format!(":{PASSWORD}"));
    let builder = Locker::builder(&url).outage_timeout(Duration::ZERO);
    let locker = builder.build().unwrap();
    let guard = held(&locker);
    server.kill();
    let failed = [
        Locker::open(&url).map(drop),
        locker.lock("b").map(drop),
        guard.verify(),
        guard.unlock(),
    ];
    for error in failed.map(Result::unwrap_err) {
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert!(!shown(&error).contains(PASSWORD));
        let (text, cause) = (error.to_string(), std::error::Error::source(&error));
        assert!(
            !text.contains(&cause.expect("a cause").to_string()),
            "{text}"
        );
        let advises = ["check", "retried", "read the value"];
        assert!(advises.iter().any(|word| text.contains(word)), "{text}");
    }
}
