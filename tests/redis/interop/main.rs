//! Clients of other languages, which lock by `SET key value NX PX ttl` and release by comparing, share locks with us.

#![cfg(feature = "redis")]

use std::time::{Duration, Instant};

use crosslock::{Error, LockGuard, Locker};
use redis::{Connection, Script, cmd};
use support::{RedisServer, wait_until};

const PATIENCE: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(80);

/// Where a name's keys are, in each kind of namespace: namespace, name, lock key, counter.
const PLACES: [(&str, &str, &str, &str); 5] = [
    ("", "job", "job", "{job}:fence"),
    ("", "{user}:1", "{user}:1", "{user}:1:fence"),
    ("", "{}x", "{}x", "{{}x}:fence"),
    (
        "crosslock",
        "job",
        "{crosslock:job}",
        "{crosslock:job}:fence",
    ),
    ("app-1", "a:b", "{app-1:a:b}", "{app-1:a:b}:fence"),
];

/// A client that knows nothing of us.
struct Foreign {
    connection: Connection,
    key: &'static str,
}

impl Foreign {
    fn new(server: &RedisServer, key: &'static str) -> Self {
        let connection = server.connection();
        Self { connection, key }
    }

    fn try_lock(&mut self, value: &str, ttl: Duration) -> bool {
        let mut set = cmd("SET");
        set.arg(self.key).arg(value).arg("NX");
        set.arg("PX")
            .arg(u64::try_from(ttl.as_millis()).expect("it fits"));
        let answer: Option<String> = set.query(&mut self.connection).expect("SET");
        answer.is_some()
    }

    fn unlock(&mut self, value: &str) -> bool {
        let code = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
        let script = Script::new(code);
        let mut call = script.key(self.key);
        let deleted: u64 = call
            .arg(value)
            .invoke(&mut self.connection)
            .expect("EVALSHA");
        deleted == 1
    }
}

fn namespace_of(key: &str) -> &'static str {
    let place = PLACES.iter().find(|place| place.2 == key);
    place.expect("one of the places").0
}

/// The line's key, beside the counter's.
fn queue_of(fence: &str) -> String {
    fence.replace(":fence", ":queue")
}

fn waiters_of(fence: &str) -> String {
    fence.replace(":fence", ":waiters")
}

fn locker(server: &RedisServer, namespace: &str) -> Locker {
    let builder = Locker::builder(&server.url()).namespace(namespace);
    builder.ttl(LONG).build().expect("open")
}

fn each_place(test: impl Fn(&RedisServer, &Locker, &str, Foreign)) {
    let server = RedisServer::start();
    for (namespace, name, key, _) in PLACES {
        let foreign = Foreign::new(&server, key);
        test(&server, &locker(&server, namespace), name, foreign);
        assert_every_key_expires(&server);
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[track_caller]
fn assert_every_key_expires(server: &RedisServer) {
    for key in server.keys() {
        assert_ne!(server.pttl(&key), -1, "{key}");
    }
}

fn assert_is_taken(locker: &Locker, name: &str) {
    assert!(locker.try_lock(name).unwrap().is_none());
    assert!(locker.try_lock_for(name, SHORT).unwrap().is_none());
}

fn held(locker: &Locker, name: &str) -> LockGuard {
    locker.try_lock(name).unwrap().expect("it is free")
}

#[test]
fn keys_are_where_they_are_said_to_be() {
    let server = RedisServer::start();
    for (namespace, name, key, fence) in PLACES {
        let guard = held(&locker(&server, namespace), name);
        let mut keys = [key, fence];
        keys.sort_unstable();
        assert_eq!(server.keys(), keys);
        assert_every_key_expires(&server);
        assert_eq!(server.get(fence), Some(guard.fencing_token().to_string()));
        std::thread::scope(|scope| {
            let other = locker(&server, namespace);
            let waiter = scope.spawn(move || other.lock(name).unwrap().unlock());
            let (queue, waiters) = (queue_of(fence), waiters_of(fence));
            let mut keys = [key, fence, &queue, &waiters];
            keys.sort_unstable();
            wait_until("the line", PATIENCE, || server.keys() == keys);
            assert_every_key_expires(&server);
            guard.unlock().unwrap();
            waiter.join().unwrap().unwrap();
        });
        assert_eq!(server.keys(), [fence]);
        assert_every_key_expires(&server);
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn keys_of_a_name_share_a_cluster_slot() {
    let server = RedisServer::builder()
        .config("cluster-enabled", "yes")
        .start();
    let slot = |key: &str| server.query::<u64>(&["CLUSTER", "KEYSLOT", key]);
    // No other key can share the slot of one that has a closing brace but no hash tag.
    for (_, _, key, fence) in PLACES.iter().filter(|place| place.1 != "{}x") {
        for companion in [*fence, &*queue_of(fence), &*waiters_of(fence)] {
            assert_eq!(slot(key), slot(companion), "{key}");
        }
    }
}

#[test]
fn foreign_holder_excludes_us_until_it_releases() {
    each_place(|server, locker, name, mut foreign| {
        assert!(foreign.try_lock("theirs", LONG));
        assert_is_taken(locker, name);
        assert_eq!(server.get(foreign.key).as_deref(), Some("theirs"));
        assert_eq!(server.keys(), [foreign.key], "we left nothing behind");
        std::thread::scope(|scope| {
            // Nobody tells it: the next of its heartbeats, which come with a third of its ttl, finds the lock free.
            let builder = Locker::builder(&server.url()).namespace(namespace_of(foreign.key));
            let waiting = builder.ttl(3 * SHORT).build().unwrap();
            let waiter = scope.spawn(move || waiting.lock(name).unwrap().unlock());
            wait_until("the line", PATIENCE, || server.keys().len() == 3);
            assert!(foreign.unlock("theirs"));
            waiter.join().unwrap().unwrap();
        });
    });
}

#[test]
fn foreign_holders_expiry_lets_us_in() {
    each_place(|_, locker, name, mut foreign| {
        let start = Instant::now();
        let ttl = Duration::from_millis(200);
        assert!(foreign.try_lock("theirs", ttl));
        let guard = locker.lock(name).unwrap();
        // Its ttl began after `start`, but the server counts whole milliseconds.
        assert!(start.elapsed() + Duration::from_millis(2) >= ttl);
        assert!(guard.is_held() && !guard.was_abandoned());
        guard.unlock().unwrap();
    });
}

#[test]
fn our_lock_excludes_foreign_clients_until_it_is_released() {
    each_place(|server, locker, name, mut foreign| {
        let guard = held(locker, name);
        assert!(!foreign.try_lock("theirs", LONG));
        let pttl = server.pttl(foreign.key);
        assert!((1..=60_000).contains(&pttl), "{pttl}");
        guard.unlock().unwrap();
        assert!(foreign.try_lock("theirs", LONG));
        assert!(foreign.unlock("theirs"));
    });
}

#[test]
fn foreign_release_with_another_value_does_nothing_to_ours() {
    each_place(|server, locker, name, mut foreign| {
        let guard = held(locker, name);
        let owner = server.get(foreign.key);
        for value in ["theirs", "", "1"] {
            assert!(!foreign.unlock(value));
        }
        assert_eq!(server.get(foreign.key), owner);
        guard.verify().unwrap();
        guard.unlock().unwrap();
    });
}

#[test]
fn our_release_never_deletes_theirs() {
    each_place(|server, locker, name, mut foreign| {
        for ask_first in [false, true] {
            let guard = held(locker, name);
            // An operator's help, or an eviction.
            server.query::<()>(&["DEL", foreign.key]);
            assert!(foreign.try_lock("theirs", LONG));
            if ask_first {
                assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
            }
            assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
            assert_eq!(server.get(foreign.key).as_deref(), Some("theirs"));
            assert!(foreign.unlock("theirs"));
        }
    });
}

#[test]
fn our_renewal_never_prolongs_theirs() {
    let server = RedisServer::start();
    let locker = Locker::builder(&server.url())
        .namespace("")
        .renew_every(Duration::from_millis(50))
        .build()
        .unwrap();
    let guard = locker.lock("job").unwrap();
    let mut foreign = Foreign::new(&server, "job");
    // In one step, so that no renewal comes between.
    server.query::<()>(&["SET", "job", "theirs", "PX", "5000"]);
    guard.lost().recv_timeout(PATIENCE).unwrap();
    drop(guard);
    assert!(server.pttl("job") <= 5_000);
    assert!(foreign.unlock("theirs"));
}

#[test]
fn tokens_go_on_over_a_foreign_holder() {
    each_place(|_, locker, name, mut foreign| {
        let first = held(locker, name);
        let token = first.fencing_token();
        first.unlock().unwrap();
        assert!(foreign.try_lock("theirs", LONG));
        assert!(foreign.unlock("theirs"));
        let second = held(locker, name);
        assert!(second.fencing_token() > token);
        assert!(!second.was_abandoned());
    });
}

#[test]
fn namespaces_and_foreign_keys_do_not_meet() {
    let server = RedisServer::start();
    let plain = held(&locker(&server, ""), "job");
    let ours = held(&locker(&server, "crosslock"), "job");
    let other = held(&locker(&server, "other"), "job");
    assert_eq!(server.keys().len(), 6);
    for guard in [plain, ours, other] {
        guard.unlock().unwrap();
    }
    wait_until("our connections to go", PATIENCE, || {
        server.connected_clients() == 0
    });
}

#[test]
fn lock_that_stays_taken_keeps_them_out_until_it_is_deleted() {
    let server = RedisServer::start();
    for (namespace, name, key, _) in PLACES {
        let (lock, mut foreign) = (locker(&server, namespace), Foreign::new(&server, key));
        let guard = lock.lock(name).unwrap();
        guard.at_least_for(LONG);
        guard.unlock().unwrap();
        assert!(!foreign.try_lock("them", LONG));
        let left = server.pttl(key);
        let longest = i64::try_from(LONG.as_millis()).unwrap();
        assert!((longest / 2..=longest).contains(&left), "{left}");
        assert_eq!(server.query::<u64>(&["DEL", key]), 1);
        assert!(foreign.try_lock("them", LONG));
        assert!(foreign.unlock("them"));
        assert!(!lock.try_lock(name).unwrap().unwrap().was_abandoned());
    }
}
