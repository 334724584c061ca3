//! A process that can start no thread for a renewer.

use std::thread;

use crosslock::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use support::say;

pub(crate) fn start_no_threads() {
    let lock = locker();
    let before = getrlimit(Resource::Nproc);
    let none = Rlimit {
        current: Some(0),
        ..before
    };
    setrlimit(Resource::Nproc, none).expect("a lower limit");
    assert!(thread::Builder::new().spawn(|| ()).is_err());
    for _ in 0..2 {
        match lock.lock("refused") {
            Err(error @ Error::Engine { .. }) => say(&error.to_string()),
            other => panic!("{other:?}"),
        }
        assert!(lock.try_lock("refused").is_err());
    }
    setrlimit(Resource::Nproc, before).expect("the limit that was");
    lock.lock("granted").unwrap().unlock().unwrap();
}
