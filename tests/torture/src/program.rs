//! The program `crosslock`, which runs a command under a lock, over and over.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};

use super::command;
use super::names::LONG;
use support::{built_program, eventually};

/// How often it is looked whether the program has ended.
const PAUSE: Duration = Duration::from_millis(10);
/// For how long a command is waited for: it has its turn behind the threads of all workers.
const PATIENCE: Duration = Duration::from_secs(60);
/// The shortest ttl of a run leaves time for renewals before it.
const KILL_AFTER: &str = "50ms";

/// The program, and the thread that runs it.
#[derive(Debug)]
pub(crate) struct Program {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The process that is to be hit.
    aimed: u32,
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
    pub(crate) fn start(dir: &Path, url: String, ttl: Duration, seed: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let mut runner = Runner {
            program: program(),
            dir: dir.to_owned(),
            url,
            ttl,
            rng: Rng::with_seed(seed),
        };
        let theirs = shared.clone();
        Program {
            shared,
            thread: Some(thread::spawn(move || runner.run(&theirs))),
            aimed: 0,
        }
    }

    /// Waits until its command runs.
    pub(crate) fn await_command(&mut self) {
        eventually(PATIENCE, || {
            let running = self.shared.running();
            let pid = running.as_ref().map_or(0, Child::id);
            let has_command = child_like(pid, |line| line.starts_with("sh ")).is_some();
            self.aimed = if has_command { pid } else { 0 };
            has_command
        });
    }

    /// Stops it, but not its watchdog.
    pub(crate) fn stop(&self) -> bool {
        self.signal(Signal::STOP)
    }

    /// After it was stopped.
    pub(crate) fn go_on(&self) -> bool {
        self.signal(Signal::CONT)
    }

    pub(crate) fn kill(&self) -> bool {
        self.signal(Signal::KILL)
    }

    pub(crate) fn kill_watchdog(&self) -> bool {
        let running = self.shared.running();
        let its = running.as_ref().filter(|child| child.id() == self.aimed);
        let watchdog = its.and_then(|child| child_like(child.id(), is_watchdog));
        watchdog.is_some_and(|pid| signal(pid, Signal::KILL))
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

    fn signal(&self, what: Signal) -> bool {
        let running = self.shared.running();
        let its = running.as_ref().filter(|child| child.id() == self.aimed);
        its.is_some_and(|child| signal(child.id(), what))
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
}

/// What the program is started with.
struct Runner {
    program: PathBuf,
    dir: PathBuf,
    url: String,
    ttl: Duration,
    rng: Rng,
}

impl Runner {
    /// Until it is to end, and then until a command has succeeded.
    fn run(&mut self, shared: &Shared) {
        loop {
            *shared.running() = Some(self.start());
            let status = loop {
                if let Some(status) = ended(&mut shared.running()) {
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

    /// The command lives for so long that its lease ends before if it isn't renewed.
    fn start(&mut self) -> Child {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("program.log"));
        let ttl = format!("{}ms", self.ttl.as_millis());
        let mut command = Command::new(&self.program);
        command
            .args(["--url", &self.url, "run", LONG])
            .args(["--ttl", &ttl, "--kill-after", KILL_AFTER])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("open its log"));
        command::give(
            &mut command,
            &self.dir,
            self.ttl.mul_f64(2.5 + self.rng.f64()),
        );
        command.spawn().expect("start the program")
    }
}

/// Reaps it when it has ended.
fn ended(running: &mut Option<Child>) -> Option<ExitStatus> {
    let status = running.as_mut()?.try_wait().expect("wait for a child")?;
    *running = None;
    Some(status)
}

fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = ["src", "lua", "cli/src"].map(|folder| root.join(folder));
    let how = "add `-p crosslock-cli --test program`";
    built_program("crosslock", &sources, how)
}

/// Says whether it was there.
fn signal(pid: u32, signal: Signal) -> bool {
    let pid = pid.try_into().ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

fn is_watchdog(line: &str) -> bool {
    line.contains(" __watch ")
}

/// The child of a process whose command line is such.
fn child_like(pid: u32, is_it: impl Fn(&str) -> bool) -> Option<u32> {
    let line = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut children = children(pid).into_iter();
    children.find(|pid| is_it(&line(pid).replace('\0', " ")))
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
    let lists: Vec<_> = lists.flatten().collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).collect()
}
