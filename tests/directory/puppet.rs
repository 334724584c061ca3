//! A process that does to locks of a directory what it is told, as a user and with the descriptors that it is told.
//!
//! It answers each order with one line. A call that fails is answered with the name of its error.

use std::env;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker};
use fork::Fork;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::{PATIENCE, URL, url};
use support::{Child, hear, is_child, say};

const ENTRY: &str = "puppet::child_obeys";

pub(crate) struct Puppet {
    child: Child,
    pub(crate) directory: PathBuf,
}

impl Puppet {
    pub(crate) fn start(directory: &Path) -> Self {
        Puppet::start_as(None, directory)
    }

    pub(crate) fn start_as(uid: Option<u32>, directory: &Path) -> Self {
        let url = url(directory);
        let mut child = Child::spawn_as(uid, ENTRY, &[(URL, &url)]);
        child.wait_for("ready", PATIENCE);
        Puppet {
            child,
            directory: directory.to_owned(),
        }
    }

    /// Tells it something, and waits until it is done.
    #[track_caller]
    pub(crate) fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.answer()
    }

    pub(crate) fn tell(&mut self, order: &str) {
        self.child.tell(order);
    }

    #[track_caller]
    pub(crate) fn answer(&mut self) -> String {
        self.child.wait_for("done", PATIENCE)
    }

    pub(crate) fn has_answered(&mut self) -> bool {
        self.child.has_said("done")
    }

    /// Leaves it no new descriptors.
    pub(crate) fn exhaust(&self) {
        self.limit_descriptors(Some(4));
    }

    /// Gives them back.
    pub(crate) fn recover(&self) {
        self.limit_descriptors(getrlimit(Resource::Nofile).current);
    }

    fn limit_descriptors(&self, current: Option<u64>) {
        let limit = getrlimit(Resource::Nofile);
        let pid = Pid::from_raw(self.child.pid().cast_signed());
        prlimit(pid, Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }
}

#[test]
fn child_obeys() {
    if !is_child(ENTRY) {
        return;
    }
    let lock = Locker::open(&env::var(URL).unwrap()).unwrap();
    let mut held = Held { lock, guard: None };
    say("ready");
    while let Some(order) = hear() {
        let answer = held.obey(&order);
        say(&format!("done {answer}"));
    }
}

struct Held {
    lock: Locker,
    guard: Option<LockGuard>,
}

impl Held {
    fn obey(&mut self, order: &str) -> String {
        let (verb, name) = order.split_once(' ').unwrap_or((order, ""));
        let lock = &self.lock;
        match verb {
            "lock" => self.keep(lock.lock(name).map(Some)),
            "read" => self.keep(lock.read(name).map(Some)),
            "try" => self.keep(lock.try_lock(name)),
            "try-read" => self.keep(lock.try_read(name)),
            "try-for-2s" => self.keep(lock.try_lock_for(name, Duration::from_secs(2))),
            "verify" => outcome(self.guard.as_ref().expect("a guard").verify()),
            "unlock" => outcome(self.guard.take().expect("a guard").unlock()),
            "break" => match lock.break_lock(name) {
                Ok(holders) => format!("broke {}", holders.len()),
                Err(e) => kind(&e),
            },
            "execute" => start_sleeping(&[]),
            "execute-with-lock" => {
                start_sleeping(&self.guard.as_ref().expect("a guard").lock_files().unwrap())
            }
            "fork" => fork_sleeping(),
            _ => panic!("{order:?}"),
        }
    }

    fn keep(&mut self, got: crosslock::Result<Option<LockGuard>>) -> String {
        match got {
            Ok(Some(guard)) => {
                let said = format!("token {} {}", guard.fencing_token(), guard.abandoned());
                self.guard = Some(guard);
                said
            }
            Ok(None) => "taken".to_owned(),
            Err(e) => kind(&e),
        }
    }
}

fn outcome(result: crosslock::Result<()>) -> String {
    result.map_or_else(|e| kind(&e), |()| "ok".to_owned())
}

/// Which error it is, and nothing more.
fn kind(error: &Error) -> String {
    let text = format!("{error:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Starts a program that sleeps, and inherits these files.
fn start_sleeping(files: &[File]) -> String {
    for file in files {
        fcntl_setfd(file.as_fd(), FdFlags::empty()).unwrap();
    }
    let child = Command::new("sleep")
        .arg(PATIENCE.as_secs().to_string())
        .spawn();
    child.unwrap().id().to_string()
}

/// Forks a child that never uses what it has got.
fn fork_sleeping() -> String {
    match fork::fork().unwrap() {
        Fork::Parent(pid) => pid.to_string(),
        Fork::Child => {
            std::thread::sleep(PATIENCE);
            std::process::exit(0);
        }
    }
}
