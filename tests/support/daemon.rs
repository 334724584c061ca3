//! The process of a server, in a directory of its own.

use std::fs::{self, File};
use std::path::{self, Path};
use std::process::{self, Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use rustix::fs::statvfs;

use super::{eventually, nursery, server, signals};

/// A JVM on a machine that is busy takes its time.
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// A file system in memory, and how much of it has to be free: a server of etcd reserves 128 MB, and tests start many.
const IN_MEMORY: &str = "/dev/shm";
const ENOUGH: u64 = 4 << 30;
const PREFIX: &str = "crosslock-test-";

/// A server; dropping it kills it, and removes the directory.
#[derive(Debug)]
pub struct Daemon {
    // Before `dir`, which is removed when nothing writes into it any more.
    process: Mutex<Child>,
    program: String,
    arguments: Vec<String>,
    dir: TempDir,
}

/// Makes a directory for a server that waits for the disk with each write: in memory, if there is enough, where a busy
/// disk keeps no test waiting.
pub(super) fn fast_dir(kind: &str) -> TempDir {
    static SWEEP: Once = Once::new();
    let free = statvfs(IN_MEMORY).map_or(0, |found| found.f_bavail * found.f_frsize);
    let mut builder = tempfile::Builder::new();
    let made = if free >= ENOUGH {
        SWEEP.call_once(remove_what_was_left);
        let prefix = format!("{PREFIX}{}-{kind}-", process::id());
        builder.prefix(&prefix).tempdir_in(IN_MEMORY)
    } else {
        builder.prefix(kind).tempdir()
    };
    made.expect("make a directory")
}

fn remove_what_was_left() {
    for entry in fs::read_dir(IN_MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next());
        let is_left = |pid: &str| !Path::new("/proc").join(pid).exists();
        if pid.is_some_and(is_left) {
            // Another test may be faster, or it may be another user's.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Something else listens at a port of it.
#[derive(Debug)]
pub(super) struct PortTaken;

impl Daemon {
    /// Starts a process in `dir`. Whether the server is there is asked by [`Daemon::wait_until`].
    pub(super) fn launch(dir: TempDir, program: &str, arguments: Vec<String>) -> Self {
        // It runs in its directory, from where a path would lead elsewhere.
        let program = match program.contains('/').then(|| path::absolute(program)) {
            Some(Ok(path)) => path.display().to_string(),
            _ => program.to_owned(),
        };
        let process = Mutex::new(spawn(dir.path(), &program, &arguments));
        Self {
            process,
            program,
            arguments,
            dir,
        }
    }

    /// Waits until `answers`.
    pub(super) fn wait_until(&self, mut answers: impl FnMut() -> bool) -> Result<(), PortTaken> {
        let mut dead = false;
        let ready = eventually(STARTS_WITHIN, || {
            dead = self.has_ended();
            dead || answers()
        });
        if ready && !dead {
            return Ok(());
        }
        self.kill();
        let log = self.log();
        let is_taken = log.contains("in use") || log.contains("BindException");
        let program = &self.program;
        assert!(dead && is_taken, "{program} doesn't start:\n{log}");
        Err(PortTaken)
    }

    /// Starts it again, with the same arguments and directory; kills it before if it runs.
    pub(super) fn relaunch(&self) {
        let mut process = self.process();
        signals::kill(&mut process);
        *process = spawn(self.dir(), &self.program, &self.arguments);
    }

    /// Kills it with SIGKILL and reaps it.
    pub fn kill(&self) {
        signals::kill(&mut self.process());
    }

    /// Stops it with SIGSTOP: clients can connect, but nothing answers.
    pub fn stop(&self) {
        signals::stop(&self.process());
    }

    pub fn cont(&self) {
        signals::cont(&self.process());
    }

    /// Whether it runs: it has neither ended nor been stopped.
    pub fn is_running(&self) -> bool {
        let mut process = self.process();
        process.try_wait().is_ok_and(|status| status.is_none()) && !signals::is_stopped(&process)
    }

    fn has_ended(&self) -> bool {
        let ended = self.process().try_wait();
        ended.is_ok_and(|status| status.is_some())
    }

    pub fn pid(&self) -> u32 {
        self.process().id()
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns what it has logged, in all its lives.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.dir().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        // A Child is whole whenever its guard is dropped, and Drop has to work after a panic.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(dir: &Path, program: &str, arguments: &[String]) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(dir.join("log"))
        .expect("open the log");
    let mut command: Command = server::mortal(program);
    command
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stderr(log.try_clone().expect("duplicate the log"))
        .stdout(log);
    nursery::spawn(command).expect("start the program")
}
