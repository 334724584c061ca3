//! Servers that die and come back.

use crosslock::{Error, Locker};

use super::*;
use support::{RedisServer, wait_until};

#[test]
fn guard_survives_the_restart_of_a_server_that_remembers() {
    let server = RedisServer::builder().append_only().start();
    let builder = Locker::builder(&server.url()).ttl(millis(30_000));
    let locker = builder.renew_every(millis(200)).build().unwrap();
    let guard = held(&locker);
    server.restart();
    guard.verify().unwrap();
    assert!(open(&server.url()).try_lock(NAME).unwrap().is_none());
    wait_for_renewal(&guard);
    assert_eq!(server.counter(FENCE), Some(guard.fencing_token()));
    guard.unlock().unwrap();
    assert_released(&server);
    drop(locker);
    assert_no_clients(&server);
}

#[test]
fn server_that_accepts_nobody_else_is_told_as_it_is() {
    let server = RedisServer::builder().config("maxclients", "1").start();
    let error = {
        let _only = server.connection();
        Locker::open(&server.url()).unwrap_err()
    };
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(shown(&error).contains("max number of clients"), "{error}");
    wait_until("a free place", PATIENCE, || {
        Locker::open(&server.url()).is_ok()
    });
}
