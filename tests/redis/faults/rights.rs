//! Users with few rights, or with the wrong password.

use std::thread;
use std::time::Instant;

use crosslock::{Error, LockGuard, Locker, LostReason};
use redis::Value;

use super::*;
use support::{RedisServer, wait_until};

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
        take_and_contend(&server, &locker, &other);
        wait_for_each_other(&server, &locker, &other);
        // The second round uses scripts that the server has forgotten.
        server.query::<()>(&["SCRIPT", "FLUSH"]);
    }
    drop((locker, other));
    assert_no_clients(&server);
    let denied = denials(&server);
    assert!(denied.is_empty(), "{denied:?}");
}

fn take_and_contend(server: &RedisServer, locker: &Locker, other: &Locker) {
    let guard = held(locker);
    assert!(other.try_lock(NAME).unwrap().is_none());
    match other.try_lock_for(NAME, millis(300)) {
        // The last question has little time for its answer.
        Ok(None) | Err(Error::Unavailable { .. }) => {}
        outcome => panic!("{outcome:?}"),
    }
    wait_for_line(server, 0);
    wait_for_renewal(&guard);
    guard.verify().unwrap();
    guard.unlock().unwrap();
    assert_released(server);
}

/// One after another, then all at once.
fn wait_for_each_other(server: &RedisServer, locker: &Locker, other: &Locker) {
    let guard = held(locker);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock(NAME).unwrap());
        wait_for_line(server, 1);
        guard.unlock().unwrap();
        waiter.join().unwrap().unlock().unwrap();
    });
    assert_released(server);
    let cycle = |lock: &Locker| lock.lock(NAME).unwrap().verify().unwrap();
    thread::scope(|scope| {
        for lock in [locker, other].repeat(3) {
            scope.spawn(move || (0..20).for_each(|_| cycle(lock)));
        }
    });
    assert_released(server);
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
    /// `lock` of a lock that is taken, which waits and gives up.
    Wait,
    /// `read`.
    Share,
    /// `read` beside another.
    ShareToo,
    Unshare,
    Inspect,
    List,
}

/// Each right, and the first call that is denied without it. No call here is denied without `publish`, `subscribe` or
/// `pubsub|numsub`, which make waiters learn of grants at once, see `channels.rs`; `unsubscribe`, without which a
/// channel stays open that nobody needs any more; `lpop` and `hget`, by which a release hands the lock on; `hgetall`,
/// by which waiters of a line that was lost are found; `incr`, in place of which `set` then counts; `zremrangebyscore`,
/// by which shares that ended by themselves are counted back; or `getrange`, by which locks are told from other keys in
/// the empty namespace.
const NEEDED_BY: [(Call, &str); 11] = [
    (Call::Open, "ping"),
    (Call::Lock, "evalsha eval set time exists"),
    (Call::Contend, "get mget pttl"),
    (Call::Renew, "pexpire"),
    (Call::Unlock, "del"),
    (Call::Wait, "lindex llen lrem rpush hset hdel"),
    (Call::Share, "zadd pexpireat"),
    (Call::ShareToo, "zrange zscore"),
    (Call::Unshare, "zrem"),
    (Call::Inspect, "lrange"),
    (Call::List, "scan"),
];

/// How many rights are needed by none of these calls.
const NEEDED_BY_NONE: usize = 10;

pub(crate) const TTL: Duration = millis(1_500);

/// Does everything once, until a call fails.
fn use_all(server: &RedisServer, user: &str) -> Result<(), (Call, Error)> {
    let at = |call: Call| move |error: Error| (call, error);
    let soon = millis(100);
    let url = url_of(server, user);
    let builder = Locker::builder(&url).ttl(TTL).renew_every(soon);
    let locker = builder.build().map_err(at(Call::Open))?;
    let guard = locker.lock(NAME).map_err(at(Call::Lock))?;
    let taken = locker.try_lock("taken").map_err(at(Call::Contend))?;
    assert!(taken.is_none());
    use_and_release(guard)?;
    // It enters the line, sends a heartbeat, and then leaves it.
    let patient = Locker::builder(&url).attempts(3);
    match patient.build().unwrap().lock("taken") {
        Err(Error::Busy { .. }) => {}
        outcome => return outcome.map(drop).map_err(at(Call::Wait)),
    }
    let first = locker.read(NAME).map_err(at(Call::Share))?;
    drop(locker.read(NAME).map_err(at(Call::ShareToo))?);
    first.unlock().map_err(at(Call::Unshare))?;
    locker.inspect(NAME).map_err(at(Call::Inspect))?;
    let mut names = locker.list("").unwrap();
    let listed = names.try_for_each(|name| name.map(drop));
    listed.map_err(at(Call::List))
}

fn use_and_release(guard: LockGuard) -> Result<(), (Call, Error)> {
    guard.verify().map_err(|error| (Call::Verify, error))?;
    let end = Instant::now() + guard.remaining();
    wait_until("a renewal, or the end of the lease", PATIENCE, || {
        !guard.is_held() || Instant::now() + guard.remaining() > end + millis(1)
    });
    if let Err(error) = guard.check() {
        let lost = guard.lost().recv().unwrap();
        assert_eq!(lost.reason, LostReason::Expired, "nobody else took it");
        return Err((Call::Renew, error));
    }
    guard.unlock().map_err(|error| (Call::Unlock, error))
}

#[test]
fn each_right_is_needed_by_the_call_that_says_so() {
    let users: Vec<_> = commands()
        .map(|right| user(&format!("no-{right}"), OURS, Some(right)))
        .collect();
    let server = server_with(&users);
    let needed = NEEDED_BY.iter().flat_map(|(call, rights)| {
        let rights = rights.split(' ');
        rights.map(|right| (*call, right))
    });
    let needed: Vec<_> = needed.collect();
    assert_eq!(needed.len() + NEEDED_BY_NONE, users.len());
    for (call, right) in needed {
        // Without `eval` a script still runs that the server knows.
        server.query::<()>(&["FLUSHALL"]);
        server.query::<()>(&["SCRIPT", "FLUSH"]);
        server.query::<()>(&["SET", "{crosslock:taken}", "theirs", "PX", "60000"]);
        let used = use_all(&server, &format!("no-{right}"));
        let (failed, error) = used.expect_err(right);
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
        wait_until("the lease to end", PATIENCE, || server.get(LOCK).is_none());
        assert_no_clients(&server);
    }
}

#[test]
fn user_without_rights_on_the_keys_is_denied() {
    let server = server_with(&[
        user("none", "resetkeys", None),
        user("other", "~{other:*", None),
        user("lock-only", "~{crosslock:n}", None),
        user("fence-only", "~{crosslock:n}:fence", None),
        user(
            "no-line",
            "~{crosslock:n} ~{crosslock:n}:fence ~{crosslock:n}:queue",
            None,
        ),
    ]);
    let place = server.addr().to_string();
    for name in ["none", "other", "lock-only", "fence-only", "no-line"] {
        let locker = open(&url_of(&server, name));
        for outcome in [
            locker.lock(NAME).map(Some),
            locker.try_lock(NAME),
            locker.try_lock_for(NAME, LONG),
        ] {
            let error = outcome.unwrap_err();
            assert_denied(&error, &place);
            assert!(error.to_string().contains("\"n\""), "{error}");
        }
        assert_every_key_expires(&server);
        assert_eq!(server.get(LOCK), None, "{name}");
    }
    let other = open(&url_of(&server, "other"))
        .with_namespace("other")
        .unwrap();
    assert_works(&other);
    drop(other);
    assert_no_clients(&server);
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
