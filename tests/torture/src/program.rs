//! The program `crosslock`, which runs a command under a lock, over and over.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};

use super::command;
use super::worker::LONG;
use support::{built_program, children, eventually};

const PAUSE: Duration = Duration::from_millis(10);
/// For how long a command is waited for: it has its turn behind the threads of all workers.
const PATIENCE: Duration = Duration::from_secs(60);
/// The shortest ttl of a run leaves time for renewals before it.
const KILL_AFTER: &str = "50ms";

#[derive(Debug)]
pub(crate) struct Program {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// It is reaped by who has this, so that its number is no other's.
    running: Mutex<Option<Child>>,
    /// Whether the next command that succeeds is the last.
    ends: AtomicBool,
    /// Whether the next is, in any case.
    is_stopped: AtomicBool,
}

impl Program {
    pub(crate) fn start(dir: &Path, program: &Path, url: String, ttl: Duration, seed: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let runner = Runner {
            crosslock: crosslock(),
            program: program.to_owned(),
            dir: dir.to_owned(),
            url,
            ttl,
        };
        let theirs = shared.clone();
        Program {
            shared,
            thread: Some(thread::spawn(move || {
                runner.run(&theirs, &mut Rng::with_seed(seed));
            })),
        }
    }

    pub(crate) fn with_command(&self) -> Option<Pid> {
        let mut found = None;
        eventually(PATIENCE, || {
            found = self.shared.running().as_ref().map(Pid::from_child);
            found = found.filter(|pid| child_like(*pid, |line| line.starts_with("sh ")).is_some());
            found.is_some()
        });
        found
    }

    /// Says whether that process was still there to be hit.
    pub(crate) fn signal(&self, pid: Pid, signal: Signal) -> bool {
        self.is_running(pid, || kill_process(pid, signal).is_ok())
    }

    /// The same with its watchdog, which is killed.
    pub(crate) fn kill_watchdog(&self, pid: Pid) -> bool {
        self.is_running(pid, || {
            let watchdog = child_like(pid, |line| line.contains(" __watch "));
            watchdog.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
        })
    }

    fn is_running(&self, pid: Pid, hit: impl FnOnce() -> bool) -> bool {
        let running = self.shared.running();
        let is_it = running
            .as_ref()
            .is_some_and(|child| Pid::from_child(child) == pid);
        is_it && hit()
    }

    /// Has it run no other behind the next command that ends by itself.
    pub(crate) fn end(&self) {
        self.shared.ends.store(true, Relaxed);
    }

    /// Waits until that has ended, and the program with it. Says whether they did.
    pub(crate) fn has_ended(&self, timeout: Duration) -> bool {
        let is_over = || self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        eventually(timeout, is_over)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Relaxed);
        if let Some(child) = &mut *self.shared.running() {
            // It fails for one that has ended. The watchdog kills the command.
            let _ = child.kill();
        }
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.running.lock().expect("no panics")
    }

    fn ended(&self) -> Option<ExitStatus> {
        let mut running = self.running();
        let status = running.as_mut()?.try_wait().expect("wait for a child")?;
        *running = None;
        Some(status)
    }
}

struct Runner {
    crosslock: PathBuf,
    program: PathBuf,
    dir: PathBuf,
    url: String,
    ttl: Duration,
}

impl Runner {
    /// Until it is to end, and then until a command has succeeded.
    fn run(&self, shared: &Shared, rng: &mut Rng) {
        loop {
            *shared.running() = Some(self.start(rng));
            let status = loop {
                if let Some(status) = shared.ended() {
                    break status;
                }
                thread::sleep(PAUSE);
            };
            let is_last = shared.ends.load(Relaxed) && status.success();
            if is_last || shared.is_stopped.load(Relaxed) {
                return;
            }
        }
    }

    fn start(&self, rng: &mut Rng) -> Child {
        let mut log = File::options();
        let log = log.create(true).append(true);
        let log = log.open(self.dir.join("program.log"));
        let ttl = format!("{}ms", self.ttl.as_millis());
        let mut command = Command::new(&self.crosslock);
        command
            .args(["--url", &self.url, "run", LONG])
            .args(["--ttl", &ttl, "--kill-after", KILL_AFTER])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("open its log"));
        let time = self.ttl.mul_f64(2.5 + rng.f64());
        command::give(&mut command, &self.program, &self.dir, time);
        command.spawn().expect("start the program")
    }
}

fn crosslock() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = ["src", "lua", "cli/src"].map(|folder| root.join(folder));
    let how = "add `-p crosslock-cli --test program`";
    built_program("crosslock", &sources, how)
}

fn child_like(pid: Pid, is_it: impl Fn(&str) -> bool) -> Option<Pid> {
    let mut children = children(pid).into_iter();
    children.find(|(_, line)| is_it(line)).map(|(pid, _)| pid)
}
