//! What is found out about the place where locks live, and what is known to be wrong with versions of servers.

use std::fmt;

/// A result of [`Locker::diagnose`](crate::Locker::diagnose): one property of the place where locks live.
///
/// With the feature `value` it is `serde::Serialize`.
///
/// # Examples
///
/// ```
/// use crosslock::Verdict;
///
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// for finding in locker.diagnose()? {
///     assert_eq!(finding.verdict, Verdict::Fine);
///     println!("{}: {}", finding.check, finding.found);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the check, such as `persistence`. Each finding has another.
    pub check: &'static str,
    /// What the check found, or why it could find nothing.
    pub found: String,
    /// Whether the guarantees hold with it.
    pub verdict: Verdict,
}

/// Whether the guarantees hold with what a check found: part of a [`Finding`].
///
/// # Examples
///
/// ```
/// use crosslock::Verdict;
///
/// let advice = match Verdict::Fine {
///     Verdict::Weak { consequence, advice, .. } => format!("{consequence}: {advice}"),
///     _ => "nothing to do".to_owned(),
/// };
/// assert_eq!(advice, "nothing to do");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// They hold.
    Fine,
    /// One of them doesn't hold here.
    #[non_exhaustive]
    Weak {
        /// What doesn't hold, and why.
        consequence: String,
        /// What you can do.
        advice: String,
    },
    /// The check can't find out.
    #[non_exhaustive]
    Unknown {
        /// What you can do so that it can.
        advice: String,
    },
}

impl Finding {
    pub(crate) fn fine(check: &'static str, found: impl Into<String>) -> Self {
        let verdict = Verdict::Fine;
        Finding::new(check, found, verdict)
    }

    pub(crate) fn weak(
        check: &'static str,
        found: impl Into<String>,
        consequence: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (consequence, advice) = (consequence.into(), advice.into());
        let verdict = Verdict::Weak {
            consequence,
            advice,
        };
        Finding::new(check, found, verdict)
    }

    pub(crate) fn unknown(
        check: &'static str,
        why: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = advice.into();
        Finding::new(check, why, Verdict::Unknown { advice })
    }

    fn new(check: &'static str, found: impl Into<String>, verdict: Verdict) -> Self {
        let found = found.into();
        Finding {
            check,
            found,
            verdict,
        }
    }
}

/// In one word.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Fine => "fine",
            Verdict::Weak { .. } => "weak",
            Verdict::Unknown { .. } => "unknown",
        })
    }
}

/// What is known to be wrong with the versions of a server before some.
#[cfg(feature = "_sockets")]
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

#[cfg(feature = "_sockets")]
impl Defect {
    pub(crate) fn is_in(&self, version: &str) -> bool {
        let numbers = numbers(version);
        let line = self.mended.iter().find(|first| first[..2] == numbers[..2]);
        let first = line.or(self.mended.last());
        self.since <= numbers && first.is_some_and(|first| numbers < *first)
    }
}

#[cfg(feature = "_sockets")]
impl Finding {
    /// Whether one of the versions that servers have is known to be wrong. `defects` begin with the worst.
    pub(crate) fn version(software: &str, mut versions: Vec<&str>, defects: &[Defect]) -> Self {
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
}

/// The numbers of `3.6.0-rc.1`: 3, 6 and 0.
#[cfg(feature = "_sockets")]
fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = [0; 3];
    let parts = version.split(['.', '-', '+']);
    for (number, part) in numbers.iter_mut().zip(parts) {
        *number = part.parse().unwrap_or_default();
    }
    numbers
}
