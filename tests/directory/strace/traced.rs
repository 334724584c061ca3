//! A child whose system calls are counted, and which is killed at one of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use super::{PATIENCE, PLAY, URL, url};
use support::{Child, wait_until};

/// Of these nobody else notices anything.
const UNNOTICED: &str = "brk clock_gettime clock_nanosleep exit exit_group futex geteuid getpid getrandom gettid \
    madvise mmap mprotect munmap prctl restart_syscall rseq rt_sigaction rt_sigprocmask sched_getaffinity \
    sched_yield sigaltstack";

/// The kinds of calls that were made, but those that nobody notices.
pub(super) fn kinds_in(log: &str) -> BTreeSet<String> {
    let call = |line: &str| {
        let (_, call) = line.split_once(' ')?;
        let (kind, _) = call.trim_start().split_once('(')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        kind.chars().all(is_name).then(|| kind.to_owned())
    };
    let mut kinds: BTreeSet<String> = log.lines().filter_map(call).collect();
    for kind in UNNOTICED.split(' ') {
        kinds.remove(kind);
    }
    kinds
}

/// A child whose system calls are counted from when it is ready.
pub(super) struct Traced {
    child: Child,
    tracer: std::process::Child,
    status: Option<ExitStatus>,
}

impl Traced {
    pub(super) fn start(play: &str, directory: &Path, inject: Option<&str>, log: &Path) -> Self {
        let url = url(directory);
        let mut child = Child::spawn("plays", &[(URL, &url), (PLAY, play)]);
        child.wait_for("ready", PATIENCE);
        let pid = child.pid().to_string();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-p", &pid, "-o"]).arg(log);
        if let Some(inject) = inject {
            strace.arg(format!("--inject={inject}"));
        }
        let mut tracer = strace.spawn().expect("strace: ./tests/run.sh installs it");
        wait_until("strace to attach", PATIENCE, || {
            // The call that it is in counts: it may be the one at which it is killed.
            let is_dead = child.try_wait().is_some();
            let ended = tracer.try_wait().unwrap();
            assert!(
                is_dead || ended.is_none_or(|status| status.success()),
                "strace can't: {ended:?}"
            );
            is_dead || is_traced(child.pid())
        });
        Traced {
            child,
            tracer,
            status: None,
        }
    }

    pub(super) fn tell(&mut self, order: &str) {
        // One that was killed hears nothing.
        if !self.has_ended() {
            self.child.try_tell(order);
        }
    }

    pub(super) fn has_said(&mut self, word: &str) -> bool {
        self.child.has_said(word)
    }

    pub(super) fn has_ended(&mut self) -> bool {
        self.status = self.status.or_else(|| self.child.try_wait());
        self.status.is_some()
    }

    /// Whether it wasn't killed.
    pub(super) fn end(&mut self) -> bool {
        wait_until("the end of a child", PATIENCE, || self.has_ended());
        let status = self.status.unwrap();
        assert!(status.success() || status.signal() == Some(9), "{status}");
        status.success()
    }

    pub(super) fn rest(&mut self) -> Vec<String> {
        self.tracer.wait().unwrap();
        self.child.rest(PATIENCE)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.child.kill();
        let _ = self.tracer.kill();
        let _ = self.tracer.wait();
    }
}

/// Whether all threads of a process are.
fn is_traced(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let mut tasks = tasks.flatten().flatten();
    tasks.all(|task| {
        // A thread may have ended meanwhile.
        let status = fs::read_to_string(task.path().join("status"));
        status.is_ok_and(|status| !status.contains("TracerPid:\t0\n"))
    })
}
