//! For how long threads wait for a processor, as the system counts it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::history::{History, LATE, WAITED};

/// The threads of a process, and for how long each has waited for a processor up to now.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    pid: u32,
    waited: HashMap<OsString, Duration>,
}

impl Delays {
    /// Those of a process, from now on. A system that doesn't count them shows none.
    pub(crate) fn of(pid: u32) -> Self {
        let waited = HashMap::new();
        let mut delays = Delays { pid, waited };
        delays.look();
        delays
    }

    /// Says for how long one of them has waited since the last look, of the one that waited longest.
    pub(crate) fn look(&mut self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid));
        let mut longest = Duration::ZERO;
        for task in tasks.into_iter().flatten().flatten() {
            let stat = fs::read_to_string(task.path().join("schedstat"));
            let Some(waited) = stat.ok().as_deref().and_then(waited) else {
                continue;
            };
            let before = self.waited.insert(task.file_name(), waited);
            longest = longest.max(waited.saturating_sub(before.unwrap_or_default()));
        }
        longest
    }
}

/// The second number: nanoseconds on a run queue.
fn waited(stat: &str) -> Option<Duration> {
    let nanos = stat.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Writes down the delays of this process's threads.
pub(crate) fn watch_threads(history: &History, ended: &AtomicBool) {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut delays = Delays::of(std::process::id());
    while !ended.load(Relaxed) {
        thread::sleep(PAUSE);
        let longest = delays.look();
        if longest >= LATE {
            history.tell_late(WAITED, longest);
        }
    }
}
