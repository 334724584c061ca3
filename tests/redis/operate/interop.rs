//! Clients of other languages, which lock by `SET key value NX PX ttl` and release by comparing, share locks with us.

use std::thread;

use crosslock::Error;
use redis::{Connection, Script, cmd};

use super::*;
use support::{RedisServer, wait_until};

const SHORT: Duration = millis(80);

/// Where a name's keys are, in each kind of namespace: namespace, name, lock key, and how its other keys begin.
const PLACES: [(&str, &str, &str, &str); 5] = [
    ("", "job", "job", "{job}"),
    ("", "{user}:1", "{user}:1", "{user}:1"),
    ("", "{}x", "{}x", "{{}x}"),
    ("crosslock", "job", "{crosslock:job}", "{crosslock:job}"),
    ("app-1", "a:b", "{app-1:a:b}", "{app-1:a:b}"),
];

/// A client that knows nothing of us.
struct Foreign {
    connection: Connection,
    key: &'static str,
}

impl Foreign {
    /// For that long, or for ever.
    fn try_lock(&mut self, ttl: Option<Duration>) -> bool {
        let mut set = cmd("SET");
        set.arg(self.key).arg("theirs").arg("NX");
        if let Some(ttl) = ttl {
            let millis = u64::try_from(ttl.as_millis()).expect("it fits");
            set.arg("PX").arg(millis);
        }
        let answer: Option<String> = set.query(&mut self.connection).expect("SET");
        answer.is_some()
    }

    fn unlock(&mut self) -> bool {
        let code = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
        let script = Script::new(code);
        let mut call = script.key(self.key);
        let deleted = call.arg("theirs").invoke::<u64>(&mut self.connection);
        deleted.expect("EVALSHA") == 1
    }
}

fn each_place(test: impl Fn(&RedisServer, &Locker, &str, Foreign)) {
    let server = RedisServer::start();
    for (namespace, name, key, _) in PLACES {
        let connection = server.connection();
        let locker = patient(&server.url()).with_namespace(namespace);
        let foreign = Foreign { connection, key };
        test(&server, &locker.expect("a namespace"), name, foreign);
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

#[test]
fn keys_are_where_they_are_said_to_be() {
    let server = RedisServer::start();
    for (namespace, name, key, start) in PLACES {
        let open = || patient(&server.url()).with_namespace(namespace).unwrap();
        let [fence, queue, waiters] =
            ["fence", "queue", "waiters"].map(|kind| format!("{start}:{kind}"));
        let assert_keys = |expected: &[&str]| {
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            wait_until("these keys", PATIENCE, || server.keys() == expected);
            assert_every_key_expires(&server);
        };
        let guard = held(&open(), name);
        assert_keys(&[key, &fence]);
        assert_eq!(server.get(&fence), Some(guard.fencing_token().to_string()));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| open().lock(name).unwrap().unlock());
            assert_keys(&[key, &fence, &queue, &waiters]);
            guard.unlock().unwrap();
            waiter.join().unwrap().unwrap();
        });
        assert_keys(&[&fence]);
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn foreign_holder_excludes_us_until_it_releases() {
    each_place(|server, locker, name, mut foreign| {
        for ttl in [Some(LONG), None] {
            assert!(foreign.try_lock(ttl));
            let before = server.keys();
            assert!(locker.try_lock(name).unwrap().is_none());
            assert!(locker.try_lock_for(name, SHORT).unwrap().is_none());
            assert_eq!(server.get(foreign.key).as_deref(), Some("theirs"));
            assert_eq!(server.keys(), before, "we left nothing behind");
            thread::scope(|scope| {
                // Nobody tells it: the next of its heartbeats, which come with a third of its ttl, finds the lock free.
                let place = PLACES.iter().find(|place| place.2 == foreign.key);
                let builder = Locker::builder(&server.url()).ttl(3 * SHORT);
                let waiting = builder.namespace(place.unwrap().0).build().unwrap();
                let waiter = scope.spawn(move || waiting.lock(name).unwrap().unlock());
                let line = before.len() + 2;
                wait_until("the line", PATIENCE, || server.keys().len() == line);
                assert!(foreign.unlock());
                waiter.join().unwrap().unwrap();
            });
        }
    });
}

#[test]
fn our_lock_excludes_foreign_clients_and_its_tokens_go_on_over_theirs() {
    each_place(|server, locker, name, mut foreign| {
        let guard = held(locker, name);
        let token = guard.fencing_token();
        assert!(!foreign.try_lock(Some(LONG)));
        assert!(!foreign.unlock());
        let pttl = server.pttl(foreign.key);
        assert!((1..=300_000).contains(&pttl), "{pttl}");
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert!(foreign.try_lock(Some(LONG)) && foreign.unlock());
        let second = held(locker, name);
        assert!(second.fencing_token() > token);
        assert!(!second.was_abandoned());
    });
}

#[test]
fn our_release_never_deletes_theirs() {
    each_place(|server, locker, name, mut foreign| {
        for ask_first in [false, true] {
            let guard = held(locker, name);
            // An operator's help, or an eviction.
            server.query::<()>(&["DEL", foreign.key]);
            assert!(foreign.try_lock(Some(LONG)));
            if ask_first {
                assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
            }
            assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
            assert_eq!(server.get(foreign.key).as_deref(), Some("theirs"));
            assert!(foreign.unlock());
        }
    });
}

#[test]
fn our_renewal_never_prolongs_theirs() {
    let server = RedisServer::start();
    let builder = Locker::builder(&server.url()).namespace("");
    let locker = builder.renew_every(millis(50)).build().unwrap();
    let guard = locker.lock("job").unwrap();
    // In one step, so that no renewal comes between.
    server.query::<()>(&["SET", "job", "theirs", "PX", "5000"]);
    guard.lost().recv_timeout(PATIENCE).unwrap();
    drop(guard);
    assert!(server.pttl("job") <= 5_000);
    assert_eq!(server.get("job").as_deref(), Some("theirs"));
}
