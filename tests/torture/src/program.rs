//! The program `crosslock`, which runs a command under a lock, over and over.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};

use super::command;
use super::delays::Delays;
use super::history::{Event, History, LATE, PROGRAM, WAITED};
use super::names::LONG;
use super::servers::Servers;
use support::{Fault, Proxy, built_program, eventually};

/// How often it is looked whether the program has ended, and how late it is.
const PAUSE: Duration = Duration::from_millis(10);
/// The shortest ttl of a run leaves time for renewals before it.
const KILL_AFTER: &str = "50ms";

/// The program, and the thread that runs it.
#[derive(Debug)]
pub(crate) struct Program {
    /// Between it and each server, unless servers have theirs.
    proxies: Vec<Proxy>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The process that is to be hit.
    aimed: u32,
}

#[derive(Debug, Default)]
struct Shared {
    /// It is reaped by who has this, so that its number is no other's.
    running: Mutex<Option<Child>>,
    ends: AtomicBool,
}

impl Program {
    pub(crate) fn start(dir: &Path, servers: &Servers, ttl: Duration, seed: u64) -> Self {
        let proxies = servers.proxies_for_one();
        let shared = Arc::new(Shared::default());
        let runner = Runner {
            program: program(),
            dir: dir.to_owned(),
            url: servers.url_by(&proxies),
            ttl,
            rng: Rng::with_seed(seed),
            history: History::open(dir, "program.jsonl", PROGRAM).expect("write history"),
        };
        let theirs = shared.clone();
        Program {
            proxies,
            shared,
            thread: Some(thread::spawn(move || runner.run(&theirs))),
            aimed: 0,
        }
    }

    /// Waits until its command runs.
    pub(crate) fn aim(&mut self, timeout: Duration) -> bool {
        let mut aimed = None;
        eventually(timeout, || {
            let running = self.shared.running();
            let pid = running.as_ref().map(Child::id);
            aimed = pid.filter(|pid| child_like(*pid, |line| line.starts_with("sh ")).is_some());
            aimed.is_some()
        });
        self.aimed = aimed.unwrap_or_default();
        aimed.is_some()
    }

    /// The process that is to be hit.
    pub(crate) fn pid(&self) -> u32 {
        self.aimed
    }

    /// Stops it, but not its watchdog.
    pub(crate) fn stop(&self, time: Duration) -> bool {
        let was_there = self.signal(Signal::STOP);
        thread::sleep(time);
        self.signal(Signal::CONT);
        was_there
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

    /// It reaches the server no more.
    pub(crate) fn cut_off(&self, time: Duration) -> bool {
        let set = |fault| self.proxies.iter().for_each(|proxy| proxy.set(fault));
        set(Fault::BlackHole);
        thread::sleep(time);
        set(Fault::None);
        !self.proxies.is_empty()
    }

    pub(crate) fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    /// Waits until it has ended by itself. Says whether it did.
    pub(crate) fn end(&mut self, timeout: Duration) -> bool {
        self.shared.ends.store(true, Relaxed);
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
        self.shared.ends.store(true, Relaxed);
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
    history: History,
}

impl Runner {
    fn run(mut self, shared: &Shared) {
        // It wants the lock from now on.
        self.history.tell(&Event {
            process: PROGRAM,
            id: u64::from(PROGRAM),
            name: LONG.to_owned(),
            detail: "run".to_owned(),
            ..Event::now("ask")
        });
        while !shared.ends.load(Relaxed) {
            let child = self.start().expect("start the program");
            let pid = child.id();
            *shared.running() = Some(child);
            let mut delays = Vec::new();
            while shared.running().as_mut().is_some_and(is_running) {
                self.tell_delays(pid, &mut delays);
                thread::sleep(PAUSE);
            }
            *shared.running() = None;
        }
    }

    fn start(&mut self) -> io::Result<Child> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("program.log"))?;
        let ttl = format!("{}ms", self.ttl.as_millis());
        let mut command = Command::new(&self.program);
        command
            .args(["--url", &self.url, "run", LONG])
            .args(["--ttl", &ttl, "--kill-after", KILL_AFTER])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let time = self.ttl.mul_f64(0.5 + 1.5 * self.rng.f64());
        command::give(&mut command, &self.dir, time);
        command.spawn()
    }

    /// Writes down for how long the program, or one of its children, waited for a processor.
    fn tell_delays(&self, pid: u32, delays: &mut Vec<(u32, Delays)>) {
        let all = [pid].into_iter().chain(children(pid));
        for one in all {
            if delays.iter().all(|(known, _)| *known != one) {
                delays.push((one, Delays::of(one)));
            }
        }
        let waited = delays.iter_mut().map(|(_, one)| one.look()).max();
        let waited = waited.unwrap_or_default();
        if waited >= LATE {
            self.history.tell_late_of(PROGRAM, pid, WAITED, waited);
        }
    }
}

fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = ["src", "lua", "cli/src"].map(|folder| root.join(folder));
    let how = "add `-p crosslock-cli --test program`";
    built_program("crosslock", &sources, how)
}

/// Reaps it when it has ended.
fn is_running(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|status| status.is_none())
}

/// Says whether it was there.
pub(crate) fn signal(pid: u32, signal: Signal) -> bool {
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
