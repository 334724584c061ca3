//! Who holds a name whose owners stand in one line, in the order in which they came: etcd and ZooKeeper.
//!
//! All that counts is who stands ahead. Readers that come one after another hold together, and so do permits as far
//! as they go; nobody goes past anyone. So an owner that holds goes on holding whatever comes behind it, and to leave
//! the line can only let others in.
//!
//! Fencing tokens come from the same order: each place in it has a range of them, below that of the next place.

use crate::base::{Mode, Token};

/// How many tokens there are for each revision. Its lease may be handed over, and pass from process to process,
/// within them. No more, so that a token is below 2^53, which fits a JSON number, for the first 2^41 revisions.
const TOKENS_OF_REVISION: u64 = 1 << 12;

/// How often a lease may be handed over to another thread: so that it may also pass from process to process some times.
pub(crate) const HAND_OVERS: u64 = 256;

/// The first token of a lease whose place in the order of all leases is that revision: below all tokens of a later one.
pub(crate) fn token_of(revision: u64, abandoned: bool) -> Token {
    let class = if abandoned { 3 } else { 1 };
    Token::from_number(revision.saturating_mul(TOKENS_OF_REVISION) | class)
}

/// The place in the order of all leases of one that has this token.
pub(crate) fn revision_of(token: u64) -> u64 {
    token / TOKENS_OF_REVISION
}

/// The token of another holder of the same lease, and of all that it may hand it over to, above the last that was used;
/// `None` when those of its revision are used up.
pub(crate) fn passed_on(last_used: u64) -> Option<Token> {
    let next = last_used.checked_add(2)?;
    // 1 of 4: nobody abandoned it.
    let first = next.checked_add((5 - next % 4) % 4)?;
    let last = first.checked_add(2 * HAND_OVERS)?;
    let is_same = revision_of(last_used) == revision_of(last);
    is_same.then(|| Token::from_number(first))
}

/// How an owner stands in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Holds,
    /// It can't hold before that one ahead of it has left.
    Behind(usize),
    /// It can't hold before some of those ahead of it have left, whichever they are.
    BehindSome,
}

/// How an owner stands that wants to hold in that way, behind those.
pub(crate) fn standing(ahead: &[Mode], mode: Mode) -> Standing {
    let fits = |other: &Mode| {
        matches!(
            (mode, other),
            (Mode::Shared, Mode::Shared) | (Mode::Permits { .. }, Mode::Permits { .. })
        )
    };
    if let Some(last) = ahead.iter().rposition(|other| !fits(other)) {
        return Standing::Behind(last);
    }
    match mode {
        Mode::Permits { count, of } if used(ahead) + u64::from(count) > of.into() => {
            Standing::BehindSome
        }
        _ => Standing::Holds,
    }
}

/// Which of a line hold.
pub(crate) fn holders(line: &[Mode]) -> impl Iterator<Item = bool> {
    let places = line.iter().enumerate();
    places.map(|(place, mode)| standing(&line[..place], *mode) == Standing::Holds)
}

/// How many permits those have, or want.
pub(crate) fn used(line: &[Mode]) -> u64 {
    let counts = line.iter().map(|mode| match mode {
        Mode::Permits { count, .. } => u64::from(*count),
        Mode::Exclusive | Mode::Shared | Mode::Task => 0,
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    #[test]
    fn tokens_of_a_revision_are_below_those_of_the_next() {
        for_any(|random| {
            let revision = random.u64(..1 << 40);
            for abandoned in [false, true] {
                let token = token_of(revision, abandoned);
                assert_eq!(token.abandoned, abandoned);
                assert_eq!(token.number % 4, if abandoned { 3 } else { 1 });
                let mut last_used = token.number + 2 * random.u64(..=HAND_OVERS);
                let mut times = 0;
                while let Some(token) = passed_on(last_used) {
                    assert!(token.number > last_used && !token.abandoned);
                    assert_eq!(token.number % 4, 1);
                    last_used = token.number + 2 * random.u64(..=HAND_OVERS);
                    assert_eq!(revision_of(last_used), revision);
                    times += 1;
                }
                assert!(times >= 7, "{times}");
            }
        });
    }
}
