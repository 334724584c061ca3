//! Until when a lock stays taken that nobody holds, as the second line of its file tells.
//!
//! It is a time of the clock that runs on during suspend, and the boot that this clock counts from: a lock that was kept
//! before a reboot isn't kept after it. Where the host doesn't tell one boot from another, it is a time of the wall
//! clock, which may be set.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base::clock::{BootClock, BootInstant, Clock};

/// Until when a lock stays taken that nobody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptUntil {
    /// In milliseconds, rounded up.
    until: u64,
    by: Timer,
}

/// Whose time it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Timer {
    /// The host's, since this boot.
    Boot(String),
    Wall,
}

const WALL: &str = "wall";

/// A line is `<20 digits> <boot>`, and a boot has as many characters as a UUID.
const DIGITS: usize = 20;
const BOOT: usize = 36;
pub(super) const LONGEST: usize = DIGITS + 1 + BOOT + 1;

impl KeptUntil {
    pub(super) fn since_now(keep: Duration) -> Self {
        match boot() {
            Some(boot) => KeptUntil {
                until: millis_of(BootClock.now().plus(keep)),
                by: Timer::Boot(boot.to_owned()),
            },
            None => KeptUntil {
                until: (wall_now() + keep)
                    .as_millis()
                    .try_into()
                    .unwrap_or(u64::MAX),
                by: Timer::Wall,
            },
        }
    }

    /// For how much longer; zero when it is over.
    pub(super) fn remaining(&self) -> Duration {
        match &self.by {
            Timer::Boot(then) if boot().is_some_and(|now| now != then) => Duration::ZERO,
            Timer::Boot(_) => BootInstant::START
                .plus(Duration::from_millis(self.until))
                .since(BootClock.now()),
            Timer::Wall => Duration::from_millis(self.until).saturating_sub(wall_now()),
        }
    }

    pub(super) fn to_line(&self) -> String {
        let by = match &self.by {
            Timer::Boot(boot) => boot,
            Timer::Wall => WALL,
        };
        format!("{:0DIGITS$} {by}\n", self.until)
    }

    /// `None` for what is no such line.
    pub(super) fn from_line(line: &[u8]) -> Option<Self> {
        let line = str::from_utf8(line).ok()?.strip_suffix('\n')?;
        let (until, by) = line.split_once(' ')?;
        let is_number = until.len() == DIGITS && until.bytes().all(|b| b.is_ascii_digit());
        let by = match by {
            WALL => Timer::Wall,
            boot if is_boot(boot) => Timer::Boot(boot.to_owned()),
            _ => return None,
        };
        let until = until.parse().ok().filter(|_| is_number)?;
        Some(KeptUntil { until, by })
    }
}

fn is_boot(text: &str) -> bool {
    text.len() == BOOT && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// What tells this boot of the host from others; `None` where nothing does.
pub(super) fn boot() -> Option<&'static str> {
    static BOOT_ID: LazyLock<Option<String>> = LazyLock::new(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| is_boot(id))
    });
    BOOT_ID.as_deref()
}

fn wall_now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

/// In milliseconds since the clock's beginning, rounded up.
fn millis_of(at: BootInstant) -> u64 {
    let since = at.since(BootInstant::START);
    let up = since.saturating_add(Duration::from_nanos(999_999));
    up.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn line_is_read_as_it_was_written() {
        for_any(|random| {
            let boot = Timer::Boot(random.text_of("0123456789abcdef-", 36..=36));
            let by = if random.bool() { Timer::Wall } else { boot };
            let until = random.u64(..);
            let kept = KeptUntil { until, by };
            let line = kept.to_line();
            assert!(line.len() <= LONGEST);
            assert_eq!(KeptUntil::from_line(line.as_bytes()), Some(kept));
        });
    }

    #[test]
    fn any_other_line_is_refused() {
        for_any(|random| {
            let line = random.list(0..=59, |random| random.u8(..));
            if let Some(kept) = KeptUntil::from_line(&line) {
                assert_eq!(kept.to_line().into_bytes(), line);
            }
        });
    }

    #[test]
    fn remaining_time_is_what_was_asked_for() {
        let kept = KeptUntil::since_now(MINUTE);
        let longest = MINUTE + Duration::from_millis(1);
        assert!((MINUTE / 2..=longest).contains(&kept.remaining()));
    }

    #[test]
    fn reboot_ends_it() {
        let mut kept = KeptUntil::since_now(MINUTE);
        kept.by = Timer::Boot("00000000-0000-0000-0000-000000000000".to_owned());
        assert_eq!(boot().is_none(), !kept.remaining().is_zero());
    }

    #[test]
    fn wall_clock_serves_where_boots_are_not_told_apart() {
        let until = |keep: Duration| u64::try_from((wall_now() + keep).as_millis()).unwrap();
        let kept = |until| KeptUntil {
            until,
            by: Timer::Wall,
        };
        let remaining = kept(until(MINUTE)).remaining();
        assert!((MINUTE / 2..=MINUTE).contains(&remaining), "{remaining:?}");
        assert!(kept(until(Duration::ZERO)).remaining().is_zero());
    }
}
