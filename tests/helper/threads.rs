//! Threads that can't be started.

use std::thread;

use crosslock::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use support::say;

pub(crate) fn start_none() {
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
