//! What Unix systems answer in their own way. `windows.rs` has the same for Windows.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::ClockId;

/// The clock that runs on while the machine sleeps: Apple's monotonic clock does, Linux's doesn't.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The name that this host has given itself. It may have any character.
pub(crate) fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// The number by which the system's tools know this thread.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn thread_number() -> String {
    rustix::thread::gettid().to_string()
}

/// The number by which this process knows this thread.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn thread_number() -> String {
    super::own_thread_number()
}

/// The time since the boot of the host, which runs on while the machine sleeps.
pub(crate) fn boot() -> Duration {
    let now = rustix::time::clock_gettime(CLOCK);
    // Neither part of a time since boot is negative, and its nanoseconds are below 10^9.
    let now = Duration::new(
        now.tv_sec.try_into().unwrap_or(0),
        now.tv_nsec.try_into().unwrap_or(0),
    );
    Namespace::own().on_host(now)
}

/// By how much the time since boot of this process' time namespace differs from that of its host: processes of one host
/// that share a directory have to mean the same by a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Namespace {
    ahead: Duration,
    behind: Duration,
}

impl Namespace {
    fn own() -> Self {
        static OWN: OnceLock<Namespace> = OnceLock::new();
        if let Some(own) = OWN.get() {
            return *own;
        }
        // Where there are none there is no such file. Not in `get_or_init`: a child that is forked off meanwhile would
        // wait for a thread that stayed with its parent.
        let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        let own = Namespace::parse(&offsets).unwrap_or_default();
        *OWN.get_or_init(|| own)
    }

    /// Of the lines of time_namespaces(7), such as `boottime -5 500000000`.
    fn parse(offsets: &str) -> Option<Self> {
        let mut words = offsets.lines().map(str::split_whitespace);
        let mut words = words.find_map(|mut line| (line.next()? == "boottime").then_some(line))?;
        let seconds: i64 = words.next()?.parse().ok()?;
        let nanos = Duration::from_nanos(words.next()?.parse().ok()?);
        let most = Duration::from_secs(seconds.unsigned_abs());
        Some(match seconds {
            0.. => Namespace {
                ahead: most + nanos,
                behind: Duration::ZERO,
            },
            _ => Namespace {
                ahead: nanos,
                behind: most,
            },
        })
    }

    fn on_host(self, time: Duration) -> Duration {
        (time + self.behind).saturating_sub(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_a_time_namespace_are_taken_from_its_clock() {
        let time = Duration::from_secs(100);
        let on_host = |boot: &str| {
            let offsets = format!("monotonic           7         0\nboottime   {boot}\n");
            Namespace::parse(&offsets)
                .unwrap()
                .on_host(time)
                .as_millis()
        };
        assert_eq!(on_host("         0         0"), 100_000);
        assert_eq!(on_host("        60 500000000"), 39_500);
        assert_eq!(on_host("       -60 500000000"), 159_500);
        assert_eq!(Namespace::parse("monotonic 1 2\n"), None);
    }
}
