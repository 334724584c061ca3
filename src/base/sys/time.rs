//! The system's clocks, and sleep.

use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time by which calls wait.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How long ago that was; zero when it is still to come.
pub(crate) fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}

/// The time since the Unix epoch, which somebody may set back.
pub(crate) fn wall() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

pub(crate) fn sleep(duration: Duration) {
    thread::sleep(duration);
}

/// Waits for so long and keeps the processor: for times that are shorter than any sleep.
pub(crate) fn spin(duration: Duration) {
    let began = now();
    while since(began) < duration {
        std::hint::spin_loop();
    }
}

/// Lets other threads run first.
pub(crate) fn yield_now() {
    thread::yield_now();
}

/// The time since the boot of the host, which runs on while the machine sleeps.
pub(crate) fn boot() -> Duration {
    // Apple's monotonic clock runs on during sleep, Linux's doesn't.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let id = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(id);
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
