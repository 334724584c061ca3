//! Numbers as Redis reads and writes them.

use super::reply::Reply;

/// As C's `%.17g` writes it.
pub(super) fn general(number: f64) -> String {
    const DIGITS: i32 = 17;
    if number.is_nan() {
        return if number.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:.16e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let places = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        let fixed = format!("{number:.places$}");
        return without_zeros(&fixed).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

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

/// One end of a range of scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) score: f64,
    pub(super) is_open: bool,
}

impl Bound {
    pub(super) fn of(text: &[u8]) -> Result<Self, Reply> {
        let (text, is_open) = match text.strip_prefix(b"(") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let score = double(text).ok_or_else(|| Reply::error("ERR min or max is not a float"))?;
        Ok(Bound { score, is_open })
    }

    pub(super) fn is_below(self, score: f64) -> bool {
        self.score < score || (!self.is_open && self.score <= score)
    }

    pub(super) fn is_above(self, score: f64) -> bool {
        self.score > score || (!self.is_open && self.score >= score)
    }
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
