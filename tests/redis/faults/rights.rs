//! Users with few rights.

use std::thread;
use std::time::Instant;

use crosslock::{Error, LockGuard, Locker, LostReason};
use redis::Value;

use super::*;
use support::{Fault, Proxy, RedisServer, wait_until};

pub(crate) const PASSWORD: &str = "s3cr3t-p4ssw0rd";

#[track_caller]
pub(crate) fn assert_denied(error: &Error, place: &str) {
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let text = shown(error);
    assert!(error.to_string().contains(place), "{place}: {text}");
    assert!(!text.contains(PASSWORD), "{text}");
}

/// What the documentation names as enough: keys and channels, and commands.
pub(crate) const OURS: &str = "~{crosslock:* resetchannels &crosslock:inbox:*";
const COMMANDS: [&str; 34] = [
    "eval",
    "evalsha",
    "get",
    "set",
    "mget",
    "incr",
    "pexpire",
    "pttl",
    "del",
    "time",
    "ping",
    "exists",
    "lindex",
    "lpop",
    "llen",
    "lrem",
    "rpush",
    "hget",
    "hgetall",
    "hset",
    "hdel",
    "zadd",
    "zrem",
    "zscore",
    "zrange",
    "zremrangebyscore",
    "pexpireat",
    "publish",
    "subscribe",
    "unsubscribe",
    "pubsub|numsub",
    "lrange",
    "scan",
    "getrange",
];

/// The rule of a user who may do all of it to `scope`, but `without`.
pub(crate) fn user(name: &str, scope: &str, without: Option<&str>) -> String {
    let rights: String = COMMANDS
        .iter()
        .filter(|command| Some(**command) != without)
        .map(|command| format!(" +{command}"))
        .collect();
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
    let proxy = Proxy::start(server.addr());
    let url = url_of(&server, "app").replace(&server.addr().to_string(), &proxy.addr().to_string());
    let builder = Locker::builder(&url)
        .ttl(millis(3_000))
        .io_timeout(millis(500))
        .renew_every(millis(100));
    let [locker, other] = [(); 2].map(|()| builder.clone().build().unwrap());
    for round in 0..2 {
        take_and_contend(&server, &locker, &other);
        wait_for_each_other(&server, &locker, &other);
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
const NEEDED_BY: [(&str, Call); COMMANDS.len() - 10] = [
    ("ping", Call::Open),
    ("evalsha", Call::Lock),
    ("eval", Call::Lock),
    ("set", Call::Lock),
    ("time", Call::Lock),
    ("exists", Call::Lock),
    ("get", Call::Contend),
    ("mget", Call::Contend),
    ("pttl", Call::Contend),
    ("pexpire", Call::Renew),
    ("del", Call::Unlock),
    ("lindex", Call::Wait),
    ("llen", Call::Wait),
    ("lrem", Call::Wait),
    ("rpush", Call::Wait),
    ("hset", Call::Wait),
    ("hdel", Call::Wait),
    ("zadd", Call::Share),
    ("pexpireat", Call::Share),
    ("zrange", Call::ShareToo),
    ("zscore", Call::ShareToo),
    ("zrem", Call::Unshare),
    ("lrange", Call::Inspect),
    ("scan", Call::List),
];

pub(crate) const TTL: Duration = millis(1_500);

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
    if let Some(failure) = use_and_release(guard) {
        return Some(failure);
    }
    // It enters the line, sends a heartbeat, and then leaves it.
    let patient = Locker::builder(&url_of(server, user)).attempts(3);
    match within(millis(300), || patient.build().unwrap().lock("taken")) {
        Err(Error::Busy { .. }) => share(&locker),
        outcome => outcome.err().map(|error| (Call::Wait, error)),
    }
}

fn share(locker: &Locker) -> Option<(Call, Error)> {
    let first = match within(millis(100), || locker.read(NAME)) {
        Ok(guard) => guard,
        Err(error) => return Some((Call::Share, error)),
    };
    if let Err(error) = within(millis(100), || locker.read(NAME)) {
        return Some((Call::ShareToo, error));
    }
    if let Err(error) = within(RELEASE, || first.unlock()) {
        return Some((Call::Unshare, error));
    }
    operate(locker)
}

fn operate(locker: &Locker) -> Option<(Call, Error)> {
    if let Err(error) = within(millis(100), || locker.inspect(NAME)) {
        return Some((Call::Inspect, error));
    }
    let mut names = locker.list("").unwrap();
    let error = within(millis(100), || names.find_map(|name| name.err()))?;
    Some((Call::List, error))
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
        for key in server.keys() {
            assert_ne!(
                server.pttl(&key),
                -1,
                "without {right} {key} stays for ever"
            );
        }
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
