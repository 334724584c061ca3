//! What is known to be wrong with versions of servers.

use super::diagnosis::Finding;

/// What is wrong with the versions before some.
#[derive(Debug)]
pub(crate) struct Defect {
    /// The first versions without it, each of its line (3.5 is one). Versions of other lines have it before the last of
    /// these.
    pub(crate) mended: &'static [[u32; 3]],
    /// Earlier versions didn't have it yet.
    pub(crate) since: [u32; 3],
    pub(crate) what: &'static str,
    /// The versions to use instead.
    pub(crate) better: &'static str,
}

impl Defect {
    pub(crate) fn is_in(&self, version: &str) -> bool {
        let numbers = numbers(version);
        let line = self.mended.iter().find(|first| first[..2] == numbers[..2]);
        let first = line.or(self.mended.last());
        self.since <= numbers && first.is_some_and(|first| numbers < *first)
    }
}

/// Whether one of the versions that servers have is known to be wrong. `defects` begin with the worst.
pub(crate) fn version(software: &str, mut versions: Vec<&str>, defects: &[Defect]) -> Finding {
    const CHECK: &str = "version";
    versions.sort_unstable();
    versions.dedup();
    let found = format!("{software} {}", versions.join(", "));
    let mut defects = defects.iter();
    match defects.find(|defect| versions.iter().any(|version| defect.is_in(version))) {
        Some(defect) => Finding::weak(CHECK, found, defect.what, defect.better),
        None => Finding::fine(CHECK, found),
    }
}

/// The numbers of `3.6.0-rc.1`: 3, 6 and 0.
fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = [0; 3];
    let parts = version.split(['.', '-', '+']);
    for (number, part) in numbers.iter_mut().zip(parts) {
        *number = part.parse().unwrap_or_default();
    }
    numbers
}

/// How the members are that decide by majority.
#[allow(dead_code, reason = "engines with members use it")]
pub(crate) fn members(found: String, are_well: bool, is_alone: bool, look: &str) -> Finding {
    const CHECK: &str = "members";
    if !are_well {
        let consequence = "locks work as long as most members do, and no longer";
        return Finding::weak(CHECK, found, consequence, look);
    }
    if is_alone {
        let consequence = "while it is down there are no locks, and with its disk they are gone";
        let advice = "three or five members, all of them in the URL";
        return Finding::weak(CHECK, found, consequence, advice);
    }
    Finding::fine(CHECK, found)
}
