//! Points in time that a file tells to other processes.
//!
//! Each is a time of the clock that runs on during suspend, and the boot that this clock counts from: a time from before a
//! reboot says nothing after it. Where the host doesn't tell one boot from another, it is a time of the wall clock,
//! which may be set.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base::clock::{BootClock, BootInstant, Clock};
use crate::base::fork::get_or_make;

/// A point in time, as a file tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Rounded up.
    millis: u64,
    by: Timer,
}

/// Whose time it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Timer {
    /// The host's, since this boot.
    Boot(Boot),
    Wall,
}

/// What tells a boot of the host from others.
type Boot = [u8; BOOT];

const WALL: &str = "wall";

/// A moment is `<20 digits> <boot>`, and a boot has as many characters as a UUID.
const DIGITS: usize = 20;
const BOOT: usize = 36;
pub(super) const LONGEST: usize = DIGITS + 1 + BOOT;

impl Moment {
    pub(super) fn now() -> Self {
        Moment::in_future(Duration::ZERO)
    }

    pub(super) fn in_future(after: Duration) -> Self {
        match boot() {
            Some(boot) => Moment {
                millis: millis_of(BootClock.now().plus(after)),
                by: Timer::Boot(*boot),
            },
            None => Moment {
                millis: whole_millis(wall_now().saturating_add(after)),
                by: Timer::Wall,
            },
        }
    }

    /// How far it is in the future; zero when it has passed, or was of another boot.
    pub(super) fn remaining(&self) -> Duration {
        let at = Duration::from_millis(self.millis);
        at.saturating_sub(self.clock().unwrap_or(Duration::MAX))
    }

    /// How long ago it was; `None` when it was of another boot.
    pub(super) fn elapsed(&self) -> Option<Duration> {
        let at = Duration::from_millis(self.millis);
        Some(self.clock()?.saturating_sub(at))
    }

    /// What its clock says now; `None` when that was the clock of another boot.
    fn clock(&self) -> Option<Duration> {
        match &self.by {
            Timer::Boot(then) if boot().is_some_and(|now| now != then) => None,
            Timer::Boot(_) => Some(BootClock.now().since(BootInstant::START)),
            Timer::Wall => Some(wall_now()),
        }
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        write!(to, "{:0DIGITS$} ", self.millis)?;
        to.write_all(match &self.by {
            Timer::Boot(boot) => boot,
            Timer::Wall => WALL.as_bytes(),
        })
    }

    /// `None` for what is no moment.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (millis, by) = text.split_once(' ')?;
        let is_number = millis.len() == DIGITS && millis.bytes().all(|b| b.is_ascii_digit());
        let by = match by {
            WALL => Timer::Wall,
            boot => Timer::Boot(boot_of(boot)?),
        };
        let millis = millis.parse().ok().filter(|_| is_number)?;
        Some(Moment { millis, by })
    }
}

fn boot_of(text: &str) -> Option<Boot> {
    let is_boot = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    text.as_bytes().try_into().ok().filter(|_| is_boot)
}

/// What tells this boot of the host from others; `None` where nothing does.
pub(super) fn boot() -> Option<&'static Boot> {
    static BOOT_ID: OnceLock<Option<Boot>> = OnceLock::new();
    let id = get_or_make(&BOOT_ID, || {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        boot_of(id.trim())
    });
    id.as_ref()
}

fn wall_now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

/// In milliseconds since the clock's beginning, rounded up.
fn millis_of(at: BootInstant) -> u64 {
    whole_millis(at.since(BootInstant::START))
}

/// Rounded up.
fn whole_millis(duration: Duration) -> u64 {
    let up = duration.saturating_add(Duration::from_nanos(999_999));
    up.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    const MINUTE: Duration = Duration::from_secs(60);

    fn text_of(moment: &Moment) -> String {
        let mut text = Vec::new();
        moment.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn moment_is_read_as_it_was_written() {
        for_any(|random| {
            let boot = random.text_of("0123456789abcdef-", 36..=36);
            let boot = Timer::Boot(boot_of(&boot).unwrap());
            let by = if random.bool() { Timer::Wall } else { boot };
            let millis = random.u64(..);
            let moment = Moment { millis, by };
            let text = text_of(&moment);
            assert!(text.len() <= LONGEST);
            assert_eq!(Moment::parse(&text), Some(moment));
        });
    }

    #[test]
    fn any_other_text_is_refused() {
        for_any(|random| {
            let text = random.text(0..=58);
            if let Some(moment) = Moment::parse(&text) {
                assert_eq!(text_of(&moment), text);
            }
        });
    }

    #[test]
    fn remaining_time_is_what_was_asked_for() {
        let moment = Moment::in_future(MINUTE);
        let longest = MINUTE + Duration::from_millis(1);
        assert!((MINUTE / 2..=longest).contains(&moment.remaining()));
        assert_eq!(moment.elapsed(), Some(Duration::ZERO));
        assert!(Moment::now().elapsed().unwrap() < MINUTE);
    }

    #[test]
    fn reboot_ends_it() {
        let mut moment = Moment::in_future(MINUTE);
        moment.by = Timer::Boot(*b"00000000-0000-0000-0000-000000000000");
        assert_eq!(boot().is_none(), !moment.remaining().is_zero());
        assert_eq!(boot().is_none(), moment.elapsed().is_some());
    }

    #[test]
    fn wall_clock_serves_where_boots_are_not_told_apart() {
        let at = |after: Duration| Moment {
            millis: whole_millis(wall_now() + after),
            by: Timer::Wall,
        };
        let remaining = at(MINUTE).remaining();
        let longest = MINUTE + Duration::from_millis(1);
        assert!((MINUTE / 2..=longest).contains(&remaining), "{remaining:?}");
        assert!(at(Duration::ZERO).remaining() <= Duration::from_millis(1));
    }
}
