//! Which locks there are, among other keys.

use std::collections::BTreeSet;

use super::*;
use support::RedisServer;

const LOCKS: usize = 10_000;

fn names(locker: &Locker, prefix: &str) -> BTreeSet<String> {
    let names = locker.list(prefix).expect("list");
    let names: Vec<String> = names.collect::<Result<_, _>>().expect("names");
    let set: BTreeSet<_> = names.iter().cloned().collect();
    assert_eq!(set.len(), names.len(), "each is told once");
    set
}

/// Makes keys as locks and their companions are, and as many others as well.
fn fill(server: &RedisServer, key: impl Fn(usize) -> String) {
    const OWNER: &str = "00000000-0000-4000-8000-000000000000/host/1/2";
    let mut connection = server.connection();
    for start in (0..LOCKS).step_by(1_000) {
        let mut pipe = redis::pipe();
        for number in start..start + 1_000 {
            let (lock, beside) = (key(number), format!("{{other:{number}}}:fence"));
            pipe.pset_ex(&lock, OWNER, 600_000)
                .set(format!("{lock}:fence"), "12q")
                .rpush(format!("{lock}:queue"), OWNER);
            pipe.set(beside, "12")
                .hset(format!("session:{number}"), "a", "b");
        }
        pipe.query::<()>(&mut connection).expect("fill");
    }
}

#[test]
fn ten_thousand_locks_are_listed_by_commands_that_look_at_few_keys_each() {
    // In the empty namespace locks are told from other keys.
    for (namespace, before, behind) in [("crosslock", "{crosslock:", "}"), ("", "", "")] {
        let server = RedisServer::start();
        fill(&server, |number| format!("{before}job {number}{behind}"));
        let locker = patient(&server.url()).with_namespace(namespace);
        let listed = names(&locker.expect("a namespace"), "").len();
        assert_eq!(listed, LOCKS);
        // Each holds the server up for as long as it takes.
        let looks = server.command_calls("scan");
        assert!(looks >= 50, "{namespace:?}: {looks} for 50,000 keys");
    }
}

#[test]
fn names_are_those_of_locks_that_are_held_and_of_this_namespace() {
    let server = RedisServer::start();
    let locker = patient(&server.url());
    for namespace in ["crosslock", "crosslock2", ""] {
        let locker = locker.with_namespace(namespace).expect("a namespace");
        let all = [
            "a*b",
            "a?b",
            "axb",
            "a}:fence",
            "{a}",
            "a",
            "\u{e9}\\[x]",
            "a:b}",
        ];
        let guards: Vec<_> = all.iter().map(|name| held(&locker, name)).collect();
        let reader = locker.read("reader").expect("it is free");
        let permits = locker.semaphore("permits", 3).expect("a semaphore");
        let permit = permits.acquire().expect("it is free");
        let mut expected: BTreeSet<_> = all.map(str::to_owned).into();
        for (prefix, few) in [("a*", &["a*b"][..]), ("a?", &["a?b"]), ("{", &["{a}"])] {
            assert_eq!(
                names(&locker, prefix),
                few.iter().map(|one| (*one).to_owned()).collect()
            );
        }
        assert_eq!(names(&locker, "\u{e9}\\["), [all[6].to_owned()].into());
        expected.extend(["reader".to_owned(), "permits".to_owned()]);
        assert_eq!(names(&locker, ""), expected, "{namespace:?}");
        drop((reader, permit, guards));
        assert_eq!(names(&locker, ""), BTreeSet::new());
    }
}

#[test]
fn foreign_holder_is_listed_in_a_namespace_only() {
    let server = RedisServer::start();
    let locker = patient(&server.url());
    server.query::<()>(&["SET", "{crosslock:n}", "theirs"]);
    server.query::<()>(&["SET", "n", "theirs"]);
    server.query::<()>(&["RPUSH", "list", "theirs"]);
    assert_eq!(names(&locker, ""), ["n".to_owned()].into());
    let empty = locker.with_namespace("").expect("a namespace");
    assert_eq!(names(&empty, ""), BTreeSet::new());
}
