//! Keys that hold something else than the scripts would write: refused, and left alone.

use super::ask::Ask;
use super::bench::{BROKEN, Bench, Several};
use support::RedisServer;
use support::scripts::Verb;

#[test]
fn counter_that_is_none_is_a_conflict_and_is_left_alone() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    for text in ["", "text", "-1", "1.5", "nan", "inf", "9007199254740992"] {
        bench.set_counter(text);
        for ask in [Ask::once("a"), Ask::waiting("a", 1_000, "")] {
            let error = bench.try_ask(ask).unwrap_err();
            assert_eq!(error.code(), Some("CONFLICT"), "{text:?}: {error}");
            assert!(error.to_string().contains(&bench.fence), "{error}");
            assert_eq!(server.keys(), [bench.fence.as_str()], "{text:?}");
            assert_eq!(server.get(&bench.fence).as_deref(), Some(text));
        }
    }
}

#[test]
fn line_that_is_none_hinders_no_release() {
    let server = RedisServer::start();
    for (wrong, knows) in [(2, true), (3, true), (2, false), (3, false)] {
        let mut bench = Bench::new(&server);
        let token = bench.token("a");
        bench.wait("b", "");
        let key = bench.keys()[wrong].clone();
        bench.delete(&key);
        bench.query::<()>(&["SADD", &key, "member"]);
        assert!(bench.release("a", knows.then_some(token)));
        let [lock, fence, ..] = bench.keys();
        assert_eq!(server.get(&lock), None);
        let counter = server.get(&fence).unwrap();
        assert_eq!(counter.trim_end_matches('q'), (token + 1).to_string());
        let members: Vec<String> = bench.query(&["SMEMBERS", &key]);
        assert_eq!(members, ["member"]);
    }
}

#[test]
fn look_and_break_are_refused_where_there_is_something_else() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.set_counter("what");
    for verb in [Verb::Inspect, Verb::Break] {
        let error = bench.run(verb, &[BROKEN]).unwrap_err();
        assert_eq!(error.code(), Some("CONFLICT"));
    }
    let mut bench = Bench::new(&server);
    let lock = bench.lock.clone();
    bench.query::<()>(&["RPUSH", &lock, "x"]);
    let error = bench.break_lock().unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}

#[test]
fn value_of_another_type_is_an_error_that_leaves_the_lock_free() {
    let server = RedisServer::start();
    for mode in ["x", "r", "1/3"] {
        let mut bench = Bench::new(&server);
        let keys = bench.keys();
        bench.query::<()>(&["SADD", &keys[6], "member"]);
        let ask = Ask::once("a").with_mode(mode);
        let answer = bench.run_on(Verb::Acquire, &keys, &ask.arguments());
        let error = answer.unwrap_err();
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
        bench.delete(&keys[6]);
        assert_eq!(bench.contents(), (None, None));
    }
}

#[test]
fn lock_of_another_type_leaves_none_of_the_others() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 3);
    let queue = several.0[2].queue.clone();
    several.0[2].query::<()>(&["SADD", &queue, "member"]);
    let error = several.try_ask(&[0, 1, 2], Ask::once("a")).unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    several.0[2].delete(&queue);
    several.assert_has_none("a");
}
