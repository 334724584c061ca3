//! Numbers as Redis reads and writes them.

use super::reply::Reply;

/// A whole number that is written as Redis would write it.
pub(super) fn strict(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_zeros = digits.starts_with('0') && text != "0";
    if !is_plain || has_zeros {
        return None;
    }
    text.parse().ok()
}

pub(super) fn integer(text: &[u8]) -> Result<i64, Reply> {
    let error = "ERR value is not an integer or out of range";
    strict(text).ok_or_else(|| Reply::error(error))
}

pub(super) fn double(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?;
    text.parse().ok().filter(|number: &f64| !number.is_nan())
}

pub(super) fn score(text: &[u8]) -> Result<f64, Reply> {
    double(text).ok_or_else(|| Reply::error("ERR value is not a valid float"))
}

/// The places of a list that lie between two, which count from its end if they are below zero.
pub(super) fn places(first: i64, last: i64, length: usize) -> std::ops::Range<usize> {
    let all = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start = |at: i64| if at < 0 { at.saturating_add(all) } else { at };
    let start = from_start(first).max(0);
    let end = from_start(last).saturating_add(1).min(all);
    if start >= end {
        return 0..0;
    }
    let place = |at: i64| usize::try_from(at).unwrap_or(0);
    place(start)..place(end)
}

/// As a cast in C does: what follows the point is dropped.
#[expect(clippy::cast_possible_truncation)]
pub(super) fn whole(number: f64) -> i64 {
    number as i64
}
