//! Clients that lock with SET at each server, and count: rslock, redlock and others. Without a namespace they and
//! crosslock exclude each other.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

const DELETE: &str =
    "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0";

/// Sets the key at these servers, where it isn't there, and says at how many it did.
fn set_at(set: &Quorum, servers: &[usize]) -> usize {
    let words = ["SET", NAME, "theirs", "NX", "PX", "10000"];
    let has_set = |at: &&usize| set.server(**at).query::<Option<String>>(&words).is_some();
    servers.iter().filter(has_set).count()
}

fn delete(set: &Quorum) {
    let delete = ["EVAL", DELETE, "1", NAME, "theirs"];
    (0..3).for_each(|at| set.server(at).query(&delete));
}

/// Has the lock at a majority, or at none.
fn try_set(set: &Quorum) -> bool {
    let has = set_at(set, &[0, 1, 2]) >= 2;
    if !has {
        delete(set);
    }
    has
}

#[test]
fn both_kinds_exclude_each_other() {
    const ROUNDS: usize = 20;
    let (set, inside) = (Setup::new().quorum(3), AtomicU32::new(0));
    let locker = builder(&set.url("0s")).namespace("").build().expect("open");
    for servers in [[0, 1], [1, 2], [0, 2]] {
        assert_eq!(set_at(&set, &servers), 2);
        let found = locker.try_lock(NAME).expect("try_lock");
        assert!(found.is_none(), "they have it at {servers:?}");
        delete(&set);
    }
    assert_eq!(set_at(&set, &[2]), 1);
    let guard = held(&locker);
    delete(&set);
    assert!(!try_set(&set), "we have it");
    guard.verify().expect("verify");
    guard.unlock().expect("unlock");
    let enter = || {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "another has it");
        thread::sleep(Duration::from_millis(1));
        inside.fetch_sub(1, Ordering::SeqCst);
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                let guard = held(&locker);
                enter();
                guard.unlock().expect("unlock");
            }
        });
        for _ in 0..ROUNDS {
            wait_until("their turn", PATIENCE, || try_set(&set));
            enter();
            delete(&set);
        }
    });
}
