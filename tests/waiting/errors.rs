//! What goes wrong with the server while one waits, or passes a lease on.

use std::time::Instant;

use super::*;
use support::{RedisServer, eventually};

#[test]
fn waiter_whose_rights_are_taken_away_ends_with_denied_and_blocks_nobody_for_long() {
    let rule = "user app on >secret ~* &* +@all";
    let server = RedisServer::builder().acl(&[rule]).start();
    let (lock, guard) = holder(&server);
    let app = Locker::builder(&server.url_as("app:secret"));
    let app = app.ttl(millis(900)).build().unwrap();
    let waiter = waiting(&app, "a");
    wait_for_line(&server, 1);
    server.query::<()>(&["ACL", "SETUSER", "app", "-@all"]);
    let error = waiter.outcome().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    guard.unlock().unwrap();
    // Its place is left to its next heartbeat, or what it is granted to its ttl.
    let next = lock.try_lock_for("a", PATIENCE).unwrap();
    next.expect("nobody has it").unlock().unwrap();
    assert_nothing_left(&server);
}

#[test]
fn inboxes_that_are_killed_all_the_time_cause_no_storm_of_commands() {
    let server = RedisServer::start();
    let (_, guard) = holder(&server);
    let lock = Locker::open(&server.url()).unwrap();
    let waiter = waiting(&lock, "a");
    wait_until("an inbox", PATIENCE, || inboxes(&server) == 1);
    let before = server.command_calls("evalsha");
    let begun = Instant::now();
    eventually(millis(2_000), || {
        server.query::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        begun.elapsed() >= millis(2_000)
    });
    let asked = server.command_calls("evalsha") - before;
    let time = begun.elapsed();
    assert!(
        u128::from(asked) * 1_000 < 75 * time.as_millis(),
        "{asked} in {time:?}"
    );
    guard.unlock().unwrap();
    waiter.result().unlock().unwrap();
}
