//! Which boot of the host wrote a file: its boot id, and the wall clock when it was booted.
//!
//! Boot ids don't tell enough: a container may have one of its own, and share the directory with processes that have another. The wall
//! clock is one for all processes of a host, and its distance from the time since boot stays as it is until somebody sets it.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use super::digits;
use crate::base::clock::{BootClock, BootInstant, Clock};
use crate::base::fork::get_or_make;
use crate::base::sys::time;

/// Which boot of the host it is, so far as the host tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BootId(pub(super) [u8; 8]);

/// What two boot ids say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boots {
    /// Surely no reboot was between them.
    Same,
    Differ,
    /// One of them isn't known.
    Unclear,
}

impl BootId {
    pub(super) fn current() -> Self {
        static CURRENT: OnceLock<BootId> = OnceLock::new();
        *get_or_make(&CURRENT, || {
            let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            id.first_chunk().map_or(BootId::UNKNOWN, |id| BootId(*id))
        })
    }

    /// That of a host that doesn't tell. A text whose sum is wrong then counts as none: it may be what a power cut left.
    pub(super) const UNKNOWN: BootId = BootId(*b"--------");

    pub(super) fn is_known(self) -> bool {
        self != BootId::UNKNOWN
    }

    /// What they say of two texts. Those of two containers differ, though no reboot was between them.
    pub(super) fn compare(self, other: BootId) -> Boots {
        match self == other {
            _ if !self.is_known() || !other.is_known() => Boots::Unclear,
            true => Boots::Same,
            false => Boots::Differ,
        }
    }
}

/// In seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Booted(u64);

impl Booted {
    pub(super) const WORD: &str = "booted";

    /// Two boots are further apart. A leap second and what two clocks that are read one after the other may differ by are less.
    pub(super) const TOLERANCE: Duration = Duration::from_secs(2);

    pub(super) fn now() -> Self {
        let up = BootClock.now().since(BootInstant::START);
        Booted(time::wall().saturating_sub(up).as_secs())
    }

    /// Whether a text says that it was written in this boot.
    pub(super) fn is_told_by(text: &str) -> bool {
        let told = text.lines().find_map(|line| {
            let (word, rest) = line.split_once(' ')?;
            (word == Booted::WORD).then(|| Booted::parse(rest))?
        });
        told.is_some_and(|told| told.0.abs_diff(Booted::now().0) <= Booted::TOLERANCE.as_secs())
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Booted)
    }

    pub(super) fn push_to(self, text: &mut String) {
        text.push_str(Booted::WORD);
        text.push(' ');
        digits::push(text, self.0);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(booted: u64) -> String {
        let mut text = "counter 1\n".to_owned();
        Booted(booted).push_to(&mut text);
        text + "kept exclusive since=1.000000000 until=2.000000000\n"
    }

    #[test]
    fn text_of_this_boot_is_told_from_those_of_others() {
        let now = Booted::now().0;
        for same in [now - 1, now, now + 1] {
            assert!(Booted::is_told_by(&text(same)));
        }
        for other in [0, now - 10, now + 10] {
            assert!(!Booted::is_told_by(&text(other)));
        }
        assert!(!Booted::is_told_by("counter 1\n"));
        assert_eq!(Booted::parse("-1"), None);
    }
}
