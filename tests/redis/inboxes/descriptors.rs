//! A process that has no file descriptor for an inbox: its waiters ask, and it is warned of once.

use support::puppet::URL;
use support::{Child, RedisServer};

use super::*;

const NAME: &str = "taken";

#[test]
fn process_without_descriptors_for_an_inbox_is_warned_once() {
    let server = RedisServer::start();
    let url = server.url();
    let _guard = held(&open(&url), NAME);
    let args = [(URL, &*url), ("TEST_FILE", NAME)];
    let mut child = Child::spawn("waits without descriptors", &args);
    assert_eq!(child.wait_for("warned", PATIENCE), "1");
}
