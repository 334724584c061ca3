//! `wait` and `test`.

use support::RedisServer;

use crate::tool::Place;

#[test]
fn test_says_whether_a_lock_is_free() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        assert_eq!(place.tool("test a").done().code(), 0);
        let holder = place
            .run("a", "echo > runs; while ! test -e end; do sleep 0.02; done")
            .start();
        place.wait_for("runs");
        assert_eq!(place.tool("test a").done().code(), 1);
        std::fs::write(place.path("end"), "").expect("make a file");
        assert_eq!(holder.done().code(), 0);
        assert_eq!(place.tool("test a").done().code(), 0);
    }
}

#[test]
fn wait_ends_when_the_lock_is_free_and_takes_nothing() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        assert_eq!(place.tool("wait a").done().code(), 0);
        let holder = place
            .run("a", "echo > runs; while ! test -e end; do sleep 0.02; done")
            .start();
        place.wait_for("runs");
        assert_eq!(place.tool("wait a -w 100ms").done().code(), 75);
        let mut waits = place.tool("wait a").start();
        crate::tool::pause(300);
        assert!(!waits.is_over());
        std::fs::write(place.path("end"), "").expect("make a file");
        assert_eq!(holder.done().code(), 0);
        assert_eq!(waits.done().code(), 0);
    }
}

#[test]
fn wait_goes_on_through_an_outage_at_its_beginning() {
    let server = RedisServer::start();
    let place = Place::with_locks_at(&server.url());
    server.kill();
    let tools = ["wait a", "wait a -w 30s"].map(|args| place.tool(args).start());
    crate::tool::pause(300);
    server.restart();
    for tool in tools {
        let done = tool.done();
        assert_eq!(done.code(), 0, "{}", done.err);
    }
}

/// Nobody knows whether the lock is taken.
#[test]
fn wait_that_never_had_an_answer_says_that_the_server_cant_be_reached() {
    let server = RedisServer::start();
    let place = Place::with_locks_at(&server.url());
    let holder = place.run("a", "echo > runs; sleep 60").start();
    place.wait_for("runs");
    server.kill();
    let done = place.tool("wait a -w 300ms").done();
    assert_eq!(done.code(), 69, "{}", done.err);
    drop(holder);
}
