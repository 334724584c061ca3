//! Threads that can't be started.

#![cfg(feature = "redis")]

use super::users::{Stranger, run_as};
use super::*;
use support::RedisServer;

/// As another user, because the limit doesn't bind the super-user.
#[test]
fn lock_that_nobody_could_renew_is_not_taken() {
    let server = RedisServer::start();
    let stranger = Stranger::new().map(|stranger| stranger.uid);
    let args = [(URL, server.url())];
    let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
    let said = run_as(stranger, "starts no threads", &args);
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("\"refused\""), "{said:?}");
    // A lock that was taken, if only for a moment, would have left a counter.
    assert_eq!(server.keys(), ["{crosslock:granted}:fence"]);
}
