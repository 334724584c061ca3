//! Threads that can't be started.

#![cfg(feature = "redis")]

use std::thread;

use crosslock::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::users::{Stranger, run_as};
use super::*;
use support::{RedisServer, is_child, say};

#[test]
fn child_starts_no_threads() {
    if !is_child("threads::child_starts_no_threads") {
        return;
    }
    let lock = locker();
    let before = getrlimit(Resource::Nproc);
    let none = Rlimit {
        current: Some(0),
        ..before
    };
    setrlimit(Resource::Nproc, none).unwrap();
    assert!(thread::Builder::new().spawn(|| ()).is_err());
    for _ in 0..2 {
        match lock.lock("refused") {
            Err(error @ Error::Engine { .. }) => say(&error.to_string()),
            other => panic!("{other:?}"),
        }
        assert!(lock.try_lock("refused").is_err());
    }
    setrlimit(Resource::Nproc, before).unwrap();
    lock.lock("granted").unwrap().unlock().unwrap();
}

/// As another user, because the limit doesn't bind the super-user.
#[test]
fn lock_that_nobody_could_renew_is_not_taken() {
    let server = RedisServer::start();
    let stranger = Stranger::new().map(|stranger| stranger.uid);
    let args = [(URL, server.url())];
    let args = args.each_ref().map(|(name, value)| (*name, value.as_str()));
    let said = run_as(stranger, "threads::child_starts_no_threads", &args);
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("\"refused\""), "{said:?}");
    // A lock that was taken, if only for a moment, would have left a counter.
    assert_eq!(server.keys(), ["{crosslock:granted}:fence"]);
}
