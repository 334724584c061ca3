//! Threads of this process, as the kernel sees them.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
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

    /// Returns for how long it has run on a processor so far, to 10 ms.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn ran_for(&self) -> Duration {
        let stat = format!("/proc/self/task/{}/stat", self.0.as_raw_nonzero());
        let stat = fs::read_to_string(stat).expect("the thread goes on");
        let (_, numbers) = stat.rsplit_once(')').expect("a name in brackets");
        // User time and system time are the 14th and the 15th; the name is the second.
        let times = numbers.split_whitespace().skip(11).take(2);
        let ticks: u64 = times
            .map(|time| time.parse::<u64>().expect("a number"))
            .sum();
        Duration::from_secs(ticks) / u32::try_from(clock_ticks_per_second()).expect("some 100")
    }
}
