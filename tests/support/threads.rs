//! Threads of this process, as the kernel sees them.

use std::fs;

use rustix::process::Pid;
use rustix::thread::gettid;

/// A thread, which another looks at.
#[derive(Clone, Copy, Debug)]
pub struct Thread(Pid);

impl Thread {
    /// Returns the one that calls.
    pub fn current() -> Self {
        Thread(gettid())
    }

    /// Returns whether it sleeps: neither runs nor has ended.
    pub fn is_asleep(&self) -> bool {
        let stat = format!("/proc/self/task/{}/stat", self.0.as_raw_nonzero());
        fs::read_to_string(stat).is_ok_and(|stat| stat.contains(") S "))
    }
}
