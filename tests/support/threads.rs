//! Threads of this process, and children of another, as the kernel sees them.

use std::fs;

use rustix::process::Pid;
use rustix::thread::gettid;

#[derive(Clone, Copy, Debug)]
pub struct Thread(Pid);

impl Thread {
    pub fn current() -> Self {
        Thread(gettid())
    }

    /// Returns whether it sleeps: neither runs nor has ended.
    pub fn is_asleep(&self) -> bool {
        let stat = format!("/proc/self/task/{}/stat", self.0.as_raw_nonzero());
        fs::read_to_string(stat).is_ok_and(|stat| stat.contains(") S "))
    }
}

pub fn children(pid: Pid) -> Vec<(Pid, String)> {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.flat_map(|thread| fs::read_to_string(thread.path().join("children")));
    let pids: Vec<String> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let children = pids.iter().filter_map(|pid| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        Some((Pid::from_raw(pid.parse().ok()?)?, line.replace('\0', " ")))
    });
    children.collect()
}
