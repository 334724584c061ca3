//! What goes wrong with the server while one waits, or passes a lease on.

use super::*;
use support::RedisServer;

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
