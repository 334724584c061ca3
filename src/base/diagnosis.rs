//! What is found out about the place where locks live.

use std::fmt;

/// Says one thing that [`Locker::diagnose`](crate::Locker::diagnose) found out about the place where locks live.
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
    /// What was looked at, in a word: `persistence`. No two findings have the same.
    pub check: &'static str,
    /// What it is like, or why that can't be seen.
    pub found: String,
    /// Whether it will do.
    pub verdict: Verdict,
}

/// Says whether what was found will do: part of a [`Finding`].
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
    /// It keeps what is promised.
    Fine,
    /// Something that is promised doesn't hold here.
    #[non_exhaustive]
    Weak {
        /// What doesn't hold, and why.
        consequence: String,
        /// What to do about it.
        advice: String,
    },
    /// It can't be seen.
    #[non_exhaustive]
    Unknown {
        /// What would show it.
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
