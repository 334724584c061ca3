//! A process that does to locks of a directory what it is told, as a user and with the descriptors that it is told.
//!
//! It answers each order with one line. A call that fails is answered with the name of its error.

use std::env;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crosslock::{Error, LeaseTicket, LockGuard, Locker};
use fork::Fork;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use rustix::system::sethostname;
use rustix::time::{ClockId, clock_gettime};

use super::{PATIENCE, URL, url};
use support::{Child, hear, is_child, say};

const ENTRY: &str = "puppet::child_obeys";
const HOUR: Duration = Duration::from_secs(3600);

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

    /// By a program that executes its arguments in its own place.
    pub(crate) fn start_under(program: &[&str], directory: &Path) -> Self {
        let url = url(directory);
        let mut child = Child::spawn_under(program, ENTRY, &[(URL, &url)]);
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

    /// Leaves it those that it has.
    pub(crate) fn exhaust_all_but_those_in_use(&self) {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.pid())).unwrap();
        let numbers = open.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let largest = numbers.map(|number| number.parse::<u64>().unwrap()).max();
        self.limit_descriptors(largest.map(|largest| largest + 1));
    }

    fn limit_descriptors(&self, current: Option<u64>) {
        self.limit(Resource::Nofile, current);
    }

    /// How long a file may be that it writes.
    pub(crate) fn limit_file_size(&self, current: Option<u64>) {
        self.limit(Resource::Fsize, current);
    }

    fn limit(&self, what: Resource, current: Option<u64>) {
        let limit = getrlimit(what);
        let pid = Pid::from_raw(self.child.pid().cast_signed());
        prlimit(pid, what, Rlimit { current, ..limit }).unwrap();
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
    let mut held = Held {
        lock: open().unwrap(),
        guard: None,
    };
    say("ready");
    while let Some(order) = hear() {
        let answer = held.obey(&order);
        say(&format!("done {answer}"));
    }
}

/// Leases that are given away last for an hour.
fn open() -> crosslock::Result<Locker> {
    Locker::builder(&env::var(URL).unwrap()).ttl(HOUR).build()
}

struct Held {
    lock: Locker,
    guard: Option<LockGuard>,
}

impl Held {
    fn obey(&mut self, order: &str) -> String {
        let (verb, name) = order.split_once(' ').unwrap_or((order, ""));
        let lock = &self.lock.clone();
        match verb {
            "lock" => self.keep(lock.lock(name).map(Some)),
            "read" => self.keep(lock.read(name).map(Some)),
            "try" => self.keep(lock.try_lock(name)),
            "try-read" => self.keep(lock.try_read(name)),
            "try-for-2s" => self.keep(lock.try_lock_for(name, Duration::from_secs(2))),
            "adopt" => self.keep(adopt(lock, name).map(Some)),
            "open" => outcome(open().map(|opened| self.lock = opened)),
            "verify" => outcome(self.guard.as_ref().expect("a guard").verify()),
            "unlock" => outcome(self.guard.take().expect("a guard").unlock()),
            "execute-with-lock" => {
                start_sleeping(&self.guard.as_ref().expect("a guard").lock_files().unwrap())
            }
            _ => obey_without_guard(lock, verb, name),
        }
    }

    fn keep(&mut self, got: crosslock::Result<Option<LockGuard>>) -> String {
        match got {
            Ok(Some(guard)) => {
                let said = format!("token {} {}", guard.fencing_token(), guard.was_abandoned());
                self.guard = Some(guard);
                said
            }
            Ok(None) => "taken".to_owned(),
            Err(e) => kind(&e),
        }
    }
}

/// What leaves no guard behind.
fn obey_without_guard(lock: &Locker, verb: &str, name: &str) -> String {
    match verb {
        "keep" => outcome(keep_taken(lock, name, 2 * HOUR)),
        "keep-a-second" => outcome(keep_taken(lock, name, Duration::from_secs(1))),
        "give" => lock
            .lock(name)
            .unwrap()
            .into_ticket()
            .expect("a ticket")
            .to_secret(),
        "store-10" => outcome(store(lock, name, 10)),
        "store-10000" => outcome(store(lock, name, 10_000)),
        "length" => length(lock, name),
        "look" => format!("{} holders", lock.inspect(name).unwrap().holders.len()),
        "break" => match lock.break_lock(name) {
            Ok(holders) => format!("broke {}", holders.len()),
            Err(e) => kind(&e),
        },
        "why" => lock.try_lock(name).unwrap_err().to_string(),
        "up" => clock_gettime(ClockId::Boottime).tv_sec.to_string(),
        "name-the-host" => {
            sethostname(b"a\nb/c\td").unwrap();
            "ok".to_owned()
        }
        "execute" => start_sleeping(&[]),
        "fork" => fork_sleeping(),
        _ => panic!("{verb:?}"),
    }
}

fn keep_taken(lock: &Locker, name: &str, least: Duration) -> crosslock::Result<()> {
    let guard = lock.lock(name)?;
    guard.at_least_for(least);
    guard.unlock()
}

fn adopt(lock: &Locker, secret: &str) -> crosslock::Result<LockGuard> {
    lock.adopt(&secret.parse::<LeaseTicket>()?)
}

fn store(lock: &Locker, name: &str, length: usize) -> crosslock::Result<()> {
    lock.mutex(name, String::new())?.set("x".repeat(length))
}

fn length(lock: &Locker, name: &str) -> String {
    let value = lock.mutex(name, String::new()).unwrap();
    value.peek().unwrap().len().to_string()
}

fn outcome(result: crosslock::Result<()>) -> String {
    result.map_or_else(|e| kind(&e), |()| "ok".to_owned())
}

/// Which error it is, and nothing more.
fn kind(error: &Error) -> String {
    let kind = match error {
        Error::Unavailable { .. } => "Unavailable",
        Error::Denied { .. } => "Denied",
        Error::Conflict { .. } => "Conflict",
        Error::Lost { .. } => "Lost",
        Error::Engine { .. } => "Engine",
        other => panic!("{other:?}"),
    };
    kind.to_owned()
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
