//! `wait` and `test`.

use support::RedisServer;

use crate::holders::{end, holder};
use crate::tool::Place;

#[test]
fn test_says_whether_a_lock_is_free() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        place.tool("test a").ends(0);
        let holder = holder(&place, "a", "end");
        place.tool("test a").ends(1);
        end(&place, "end");
        holder.ends(0);
        place.tool("test a").ends(0);
    }
}

#[test]
fn wait_ends_when_the_lock_is_free_and_takes_nothing() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        place.tool("wait a").ends(0);
        let holder = holder(&place, "a", "end");
        place.tool("wait a -w 100ms").ends(75);
        let mut waits = place.tool("wait a").start();
        crate::tool::pause(300);
        assert!(!waits.is_over());
        end(&place, "end");
        holder.ends(0);
        waits.ends(0);
    }
}

/// Nobody knows whether the lock is taken.
#[test]
fn wait_that_never_had_an_answer_says_that_the_server_cant_be_reached() {
    let (server, place) = Place::with_server();
    let holder = holder(&place, "a", "never");
    server.kill();
    place.tool("wait a -w 300ms").ends(69);
    drop(holder);
}
