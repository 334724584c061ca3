//! Places that stay taken for a while after their owners have released them.
//!
//! The node says for how many milliseconds, and the servers when it was made, by the leader's clock. Whoever finds one that is
//! over deletes it.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Op, Stat};
use super::line::Line;
use super::locks::{Locks, Name, get};
use super::looks::LeadersClock;
use super::question::Question;
use super::replies::Trouble;
use crate::base::clock::Deadline;

/// What was found of the kept places of a line.
pub(super) enum Kept {
    None,
    /// Some were over, and are deleted.
    SomeAreOver,
    /// The first of them is over after this.
    For(Duration),
}

/// For how long the place is still kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left(pub(super) Duration);

/// What is in the node of a place that is kept for so long.
pub(super) fn content(keep: Duration) -> Vec<u8> {
    // Rounded up: it is kept for no less.
    let millis = keep.as_nanos().div_ceil(1_000_000);
    millis.to_string().into_bytes()
}

/// For how long a place with that content is kept at this time of the leader.
pub(super) fn left(content: &[u8], stat: &Stat, leaders_now: i64) -> Left {
    let millis = String::from_utf8_lossy(content).parse::<u64>().unwrap_or(0);
    let passed = u64::try_from(leaders_now.saturating_sub(stat.ctime)).unwrap_or(0);
    Left(Duration::from_millis(millis.saturating_sub(passed)))
}

/// Deletes the kept places of a line that are over. The leader's clock is asked for, if it isn't known yet.
pub(super) fn tidy(
    locks: &Arc<Locks>,
    question: &Question<'_>,
    name: &Name,
    line: &Line,
    clock: &mut Option<LeadersClock>,
) -> Result<Kept, Trouble> {
    if line.kept().next().is_none() {
        return Ok(Kept::None);
    }
    let known = match *clock {
        Some(known) => known,
        None => locks.leaders_clock(name, question.deadline)?,
    };
    *clock = Some(known);
    let leaders_now = known.at(locks.clock.now());
    let (over, left) = over(locks, name, line, leaders_now, question.deadline)?;
    if !over.is_empty() {
        delete(locks, name, &over, question.deadline)?;
        return Ok(Kept::SomeAreOver);
    }
    Ok(left.map_or(Kept::None, Kept::For))
}

/// The nodes of the kept places that are over at that time, and after how long the next will be.
pub(super) fn over(
    locks: &Arc<Locks>,
    name: &Name,
    line: &Line,
    leaders_now: i64,
    deadline: &Deadline,
) -> Result<(Vec<String>, Option<Duration>), Trouble> {
    let kept: Vec<_> = line.kept().map(|member| member.node.clone()).collect();
    let requests: Vec<_> = kept.iter().map(|node| get(name.child(node))).collect();
    let mut replies = locks.call_again(&requests, deadline)?;
    let (mut over, mut first) = (Vec::new(), None);
    for node in kept {
        let left = replies
            .data()?
            .map(|(content, stat)| left(&content, &stat, leaders_now).0);
        match left {
            None | Some(Duration::ZERO) => over.push(node),
            Some(left) => first = Some(first.map_or(left, |first: Duration| first.min(left))),
        }
    }
    Ok((over, first))
}

fn delete(
    locks: &Arc<Locks>,
    name: &Name,
    over: &[String],
    deadline: &Deadline,
) -> Result<(), Trouble> {
    let delete = |node: &String| Op::Delete {
        path: name.child(node),
        version: None,
    };
    let requests: Vec<_> = over.iter().map(delete).collect();
    locks.call_again(&requests, deadline).map(drop)
}

/// The line of a name as the leader has it, without the places that are over.
pub(super) fn current_line(
    locks: &Arc<Locks>,
    name: &Name,
    deadline: &Deadline,
) -> Result<Line, Trouble> {
    let line = locks.line(name, deadline)?;
    if line.kept().next().is_none() {
        return Ok(line);
    }
    let LeadersClock(leaders_now, _) = locks.leaders_clock(name, deadline)?;
    let (over, _) = over(locks, name, &line, leaders_now, deadline)?;
    Ok(line.without(&over))
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
            let expected = Left(Duration::from_millis(millis));
            assert_eq!(left(&content, &stat, now), expected, "{now}");
        }
        assert_eq!(left(b"x", &stat, 1_000_000), Left(Duration::ZERO));
    }

    #[test]
    fn longest_time_fits() {
        let stat = Stat::default();
        let longest = crate::base::limits::LONGEST_KEEP;
        assert_eq!(left(&content(longest), &stat, 0), Left(longest));
    }
}
