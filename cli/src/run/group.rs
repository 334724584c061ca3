//! A process group: sends it signals, and finds out whether a process of it still runs.

use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, test_kill_process_group, waitpid,
};

/// The process group of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group(pub(crate) Pid);

impl Group {
    /// Sends a signal. A group that is gone needs none.
    pub(crate) fn signal(self, signal: Signal) {
        if let Err(e) = kill_process_group(self.0, signal) {
            let group = self.0.as_raw_nonzero();
            log::debug!("can't signal process group {group}: {e}");
        }
    }

    /// Whether one of its processes can still run. A zombie can't, though it can be signalled.
    pub(crate) fn lives(self) -> bool {
        if test_kill_process_group(self.0) == Err(rustix::io::Errno::SRCH) {
            return false;
        }
        let group = self.0.as_raw_nonzero().get();
        // Without /proc, a process that can be signalled counts.
        processes().is_none_or(|all| all.iter().any(|one| one.group == group && one.can_run))
    }

    /// Waits until none of its processes can run. Returns `false` if that takes longer than `most`.
    pub(crate) fn wait_until_dead(self, most: Duration) -> bool {
        const PAUSE: Duration = Duration::from_millis(1);
        let start = Instant::now();
        while self.lives() {
            if start.elapsed() > most {
                return false;
            }
            // Each look reads all of /proc, so the pauses grow.
            thread::sleep((start.elapsed() / 8).max(PAUSE));
        }
        true
    }
}

/// A process, as /proc describes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    can_run: bool,
}

/// All processes of this host, or `None` without /proc.
pub(crate) fn processes() -> Option<Vec<Process>> {
    let entries = fs::read_dir("/proc").ok()?;
    let is_number = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let all: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_number))
        // A process that has ended meanwhile can't be read.
        .filter_map(|entry| read(&entry.path().join("stat").to_string_lossy()).ok()?)
        .collect();
    (!all.is_empty()).then_some(all)
}

/// Reaps the children of this process that have ended, except `kept`.
pub(crate) fn reap_all_but(kept: &[Option<Pid>]) {
    let own = getpid().as_raw_nonzero().get();
    let all = processes().unwrap_or_default();
    let ended = all.iter().filter(|one| one.parent == own && !one.can_run);
    for pid in ended.filter_map(|one| Pid::from_raw(one.pid)) {
        if !kept.contains(&Some(pid)) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Returns one process.
pub(crate) fn process(pid: Pid) -> Option<Process> {
    read(&format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?
}

fn read(path: &str) -> io::Result<Option<Process>> {
    // The name of the program may be any bytes.
    let stat = fs::read(path)?;
    Ok(parse(&String::from_utf8_lossy(&stat)))
}

/// The format is in proc(5): `pid (name) state ppid pgrp ..`. The 20th field is the number of threads.
fn parse(stat: &str) -> Option<Process> {
    const THREADS: usize = 20 - 3;
    let (pid, rest) = stat.split_once(' ')?;
    // The name may contain brackets and blanks.
    let fields: Vec<_> = rest.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
    let is_zombie = matches!(*fields.first()?, "Z" | "X");
    Some(Process {
        pid: pid.parse().ok()?,
        parent: number(1)?,
        group: number(2)?,
        // If the first thread has ended, the process looks like a zombie while its other threads run.
        can_run: !is_zombie || number(THREADS)? > 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "0 -1 4194560 94 0 0 0 0 0 0 0 20 0";

    #[test]
    fn process_is_read_from_its_line() {
        let line = format!("12 (a) b (c) S 3 4 5 {REST} 1 0 77");
        let expected = Process {
            pid: 12,
            parent: 3,
            group: 4,
            can_run: true,
        };
        assert_eq!(parse(&line), Some(expected));
        assert_eq!(parse(""), None);
        assert_eq!(parse("12 (a) S"), None);
    }

    #[test]
    fn zombie_can_run_only_with_other_threads() {
        let can_run = |threads: u32| {
            let line = format!("12 (a) Z 3 4 5 {REST} {threads} 0 77");
            parse(&line).expect("it is one").can_run
        };
        assert!(!can_run(1));
        assert!(can_run(2));
    }
}
