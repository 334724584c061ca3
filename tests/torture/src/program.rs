//! The program `crosslock`, which runs a command under a lock, over and over.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::command;
use super::worker::LONG;
use support::{built_program, children, eventually};

/// For how long a command is waited for: it has its turn behind the threads of all workers.
const PATIENCE: Duration = Duration::from_secs(60);
/// The shortest ttl of a run leaves time for renewals before it.
const KILL_AFTER: &str = "50ms";
/// Until a command has succeeded and there is this file.
const AGAIN_AND_AGAIN: &str = "until \"$@\" && test -e end; do sleep 0.01; done";

/// A shell that starts the program again and again.
#[derive(Debug)]
pub(crate) struct Program {
    shell: Child,
    dir: PathBuf,
}

impl Program {
    /// Has it run commands, which are `program`.
    pub(crate) fn start(dir: &Path, program: &Path, url: &str, ttl: Duration) -> Self {
        let log = File::create(dir.join("program.log")).expect("make its log");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", AGAIN_AND_AGAIN, "sh"])
            .arg(crosslock())
            .args(["--url", url, "run", LONG, "--ttl"])
            .arg(format!("{}ms", ttl.as_millis()))
            .args(["--kill-after", KILL_AFTER])
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command::give(&mut shell, program, dir, ttl);
        Program {
            shell: shell.spawn().expect("start the shell"),
            dir: dir.to_owned(),
        }
    }

    /// Waits until a command runs, and returns the process of the program.
    pub(crate) fn with_command(&self) -> Option<Pid> {
        let mut found = None;
        eventually(PATIENCE, || {
            found = child_like(Pid::from_child(&self.shell), |line| line.contains(" run "));
            found = found.filter(|pid| child_like(*pid, |line| line.starts_with("sh ")).is_some());
            found.is_some()
        });
        found
    }

    /// Says whether that process was still there to be hit.
    pub(crate) fn signal(&self, pid: Pid, signal: Signal) -> bool {
        self.is_running(pid) && kill_process(pid, signal).is_ok()
    }

    /// The same with its watchdog, which is killed.
    pub(crate) fn kill_watchdog(&self, pid: Pid) -> bool {
        let watchdog = child_like(pid, |line| line.contains(" __watch "));
        let watchdog = watchdog.filter(|_| self.is_running(pid));
        watchdog.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }

    fn is_running(&self, pid: Pid) -> bool {
        let mut all = children(Pid::from_child(&self.shell)).into_iter();
        all.any(|(child, _)| child == pid)
    }

    /// Has it run no other behind the next command that succeeds.
    pub(crate) fn end(&self) {
        File::create(self.dir.join("end")).expect("make a file");
    }

    /// Waits until that has ended, and the program with it. Says whether they did.
    pub(crate) fn has_ended(&mut self, timeout: Duration) -> bool {
        eventually(timeout, || {
            let status = self.shell.try_wait().expect("wait for a child");
            status.is_some()
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let programs = children(Pid::from_child(&self.shell));
        // They fail for one that has ended.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        for (program, _) in programs {
            // The watchdog kills the command.
            let _ = kill_process(program, Signal::KILL);
        }
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
