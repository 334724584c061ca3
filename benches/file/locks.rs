//! The locks that are compared.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crosslock::Prefer;
use tempfile::TempDir;

use super::support::{Inside, Server, Task, Way, Worker};

/// One lock, and by whom it is used.
#[derive(Clone)]
pub(crate) struct Lock {
    pub(crate) label: &'static str,
    program: PathBuf,
    url: String,
    name: String,
    is_flock: bool,
}

/// All of them, with the server that one of them needs.
pub(crate) struct Locks {
    pub(crate) all: Vec<Lock>,
    _server: Server,
    _directory: TempDir,
}

impl Locks {
    pub(crate) fn start(old: Option<&Path>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = Server::start(directory.path());
        let this = env::current_exe().expect("the path of this bench");
        let url = |name: &str| format!("file://{}", directory.path().join(name).display());
        let lock = |label, program: &Path, url: String, name: &str| Lock {
            label,
            program: program.to_owned(),
            url,
            name: name.to_owned(),
            is_flock: label == "flock",
        };
        let mut all = vec![lock("file:", &this, url("new"), "bench")];
        all.extend(old.map(|old| lock("file: old", old, url("old"), "bench")));
        all.push(lock("redis", &this, server.unix(), "bench"));
        let path = directory.path().join("flock");
        let path = path.to_str().expect("text");
        all.push(lock("flock", &this, url("by hand"), path));
        Locks {
            all,
            _server: server,
            _directory: directory,
        }
    }

    /// Those in files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Lock> {
        self.all.iter().filter(|lock| lock.label != "redis")
    }
}

impl Lock {
    /// Starts a process that uses it.
    pub(crate) fn spawn(&self, use_as: Use) -> Worker {
        let way = match use_as.is_timed {
            true => Way::Timed,
            false if self.is_flock => Way::Flock,
            false => Way::Lock,
        };
        let task = Task {
            way,
            prefer: Prefer::Fair,
            hold: use_as.hold,
            inside: use_as.inside,
            every: use_as.every,
        };
        Worker::spawn_of(&self.program, &self.url, &self.name, task)
    }

    /// The same of another name, which nobody who was killed has yet.
    pub(crate) fn named(&self, name: &str) -> Self {
        Lock {
            name: name.to_owned(),
            ..self.clone()
        }
    }

    pub(crate) fn can_wait_for_a_time(&self) -> bool {
        !self.is_flock
    }
}

/// What a process does with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) hold: Duration,
    pub(crate) inside: Inside,
    pub(crate) every: Duration,
    pub(crate) is_timed: bool,
}

impl Use {
    /// Again and again.
    pub(crate) fn holding(hold: Duration) -> Self {
        Use {
            hold,
            inside: Inside::Sleep,
            every: Duration::ZERO,
            is_timed: false,
        }
    }

    pub(crate) fn counting() -> Self {
        Use {
            inside: Inside::Count,
            ..Use::holding(Duration::ZERO)
        }
    }

    /// Works for so long while it holds.
    pub(crate) fn working(hold: Duration) -> Self {
        Use {
            inside: Inside::Spin,
            ..Use::holding(hold)
        }
    }

    /// Comes twelve times, and waits for a limited time.
    pub(crate) fn timed() -> Self {
        Use {
            every: Duration::from_millis(50),
            is_timed: true,
            ..Use::holding(Duration::ZERO)
        }
    }
}
