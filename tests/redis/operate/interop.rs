//! Clients of other languages, which lock by `SET key value NX PX ttl` and release by comparing, share locks with us.

use crosslock::Error;

use super::*;
use support::RedisServer;

/// Where a name's keys are, in each kind of namespace: namespace, name and lock key.
const PLACES: [(&str, &str, &str); 5] = [
    ("", "job", "job"),
    ("", "{user}:1", "{user}:1"),
    ("", "{}x", "{}x"),
    ("crosslock", "job", "{crosslock:job}"),
    ("app-1", "a:b", "{app-1:a:b}"),
];

/// What a client does that knows nothing of us: for so many milliseconds.
fn try_lock(server: &RedisServer, key: &str, ttl: &str) -> bool {
    let set = ["SET", key, "theirs", "NX", "PX", ttl];
    server.query::<Option<String>>(&set).is_some()
}

fn unlock(server: &RedisServer, key: &str) -> bool {
    let code = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
    server.query::<u64>(&["EVAL", code, "1", key, "theirs"]) == 1
}

fn each_place(test: impl Fn(&RedisServer, &Locker, &str, &str)) {
    let server = RedisServer::start();
    for (namespace, name, key) in PLACES {
        let locker = patient(&server.url()).with_namespace(namespace);
        test(&server, &locker.expect("a namespace"), name, key);
        for key in server.keys() {
            assert_ne!(server.pttl(&key), -1, "{key} doesn't expire");
        }
        server.query::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn foreign_holder_excludes_us_until_it_releases_or_expires() {
    each_place(|server, locker, name, key| {
        assert!(try_lock(server, key, "300000"));
        let before = server.keys();
        assert!(locker.try_lock(name).unwrap().is_none());
        assert!(locker.try_lock_for(name, millis(80)).unwrap().is_none());
        assert_eq!(server.keys(), before, "we left nothing behind");
        assert!(unlock(server, key) && try_lock(server, key, "200"));
        // Nobody tells it: the next of its heartbeats finds the lock free.
        let guard = locker.lock(name).unwrap();
        assert!(guard.is_held() && !guard.was_abandoned());
        guard.unlock().unwrap();
    });
}

#[test]
fn our_lock_excludes_foreign_clients_and_its_tokens_go_on_over_theirs() {
    each_place(|server, locker, name, key| {
        let guard = held(locker, name);
        let token = guard.fencing_token();
        assert!(!try_lock(server, key, "300000") && !unlock(server, key));
        let pttl = server.pttl(key);
        assert!((1..=300_000).contains(&pttl), "{pttl}");
        guard.verify().unwrap();
        guard.unlock().unwrap();
        assert!(try_lock(server, key, "300000") && unlock(server, key));
        let second = held(locker, name);
        assert!(second.fencing_token() > token);
        assert!(!second.was_abandoned());
    });
}

#[test]
fn our_release_and_renewal_never_touch_theirs() {
    each_place(|server, locker, name, key| {
        for ask_first in [false, true] {
            let guard = held(locker, name);
            // An operator's help, or an eviction.
            server.query::<()>(&["DEL", key]);
            assert!(try_lock(server, key, "5000"));
            if ask_first {
                assert!(matches!(guard.verify(), Err(Error::Lost { .. })));
            }
            assert!(matches!(guard.unlock(), Err(Error::Lost { .. })));
            assert!(server.pttl(key) <= 5_000);
            assert!(unlock(server, key));
        }
    });
}
