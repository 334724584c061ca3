//! Places that stay taken for a while after their owners have released them.
//!
//! The node says for how many milliseconds, and the servers when it was made, by the leader's clock. Whoever finds one in its way
//! that is over deletes it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::client::{Failure, Op, Stat};
use super::locks::{Locks, Name};
use super::looks::LeadersClock;
use crate::base::clock::Deadline;
use crate::engine::line::{Entry, Line};

/// What is in the node of a place that is kept for so long.
pub(super) fn content(keep: Duration) -> Vec<u8> {
    // Rounded up: it is kept for no less.
    let millis = keep.as_nanos().div_ceil(1_000_000);
    millis.to_string().into_bytes()
}

/// For how long a place with that content is kept at this time of the leader.
pub(super) fn left(content: &[u8], stat: &Stat, leaders_now: i64) -> Duration {
    let millis = String::from_utf8_lossy(content).parse::<u64>().unwrap_or(0);
    let passed = u64::try_from(leaders_now.saturating_sub(stat.ctime)).unwrap_or(0);
    Duration::from_millis(millis.saturating_sub(passed))
}

/// For how long each kept place of a line lasts, by its node. One that is gone is over.
pub(super) fn times_left(
    locks: &Arc<Locks>,
    name: &Name,
    line: &Line,
    leaders_now: i64,
    deadline: &Deadline,
) -> Result<HashMap<String, Duration>, Failure> {
    let kept = line.0.iter().filter(|entry| entry.is_kept());
    let kept: Vec<_> = kept.map(|entry| entry.id.clone()).collect();
    let requests: Vec<_> = kept.iter().map(|node| Op::get(name.child(node))).collect();
    let mut replies = locks.call_again(&requests, deadline)?;
    let mut all = HashMap::new();
    for node in kept {
        let found = replies.data()?;
        let left = found.map(|(content, stat)| left(&content, &stat, leaders_now));
        all.insert(node, left.unwrap_or_default());
    }
    Ok(all)
}

/// The line of a name as the leader has it, without the places that are over.
pub(super) fn current_line(
    locks: &Arc<Locks>,
    name: &Name,
    deadline: &Deadline,
) -> Result<Line, Failure> {
    let mut line = locks.children(name, deadline)?.line;
    if line.0.iter().any(Entry::is_kept) {
        let LeadersClock(now, _) = locks.leaders_clock(name, deadline)?;
        let left = times_left(locks, name, &line, now, deadline)?;
        let is_over = |entry: &Entry| left.get(&entry.id).is_some_and(Duration::is_zero);
        line.0.retain(|entry| !is_over(entry));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_kept_for_no_less_than_was_said() {
        let stat = Stat {
            ctime: 1_000_000,
            ..Stat::default()
        };
        let content = content(Duration::from_micros(99_001));
        assert_eq!(content, b"100");
        for (now, millis) in [
            (1_000_000, 100),
            (999_000, 100),
            (1_000_099, 1),
            (1_000_100, 0),
            (i64::MAX, 0),
        ] {
            let expected = Duration::from_millis(millis);
            assert_eq!(left(&content, &stat, now), expected, "{now}");
        }
        assert_eq!(left(b"x", &stat, 1_000_000), Duration::ZERO);
    }

    #[test]
    fn longest_time_fits() {
        let stat = Stat::default();
        let longest = crate::base::limits::LONGEST_KEEP;
        assert_eq!(left(&content(longest), &stat, 0), longest);
    }
}
