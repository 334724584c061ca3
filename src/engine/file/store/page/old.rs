//! What version 0.1 wrote into a lock's file, and the ones after it until this format: a counter of 20 digits, a newline,
//! and a record that says who holds the lock, or until when it is kept. What matters of it is the counter.
//!
//! It uses nothing.

const DIGITS: usize = 20;
/// With the record, and the mark of a break behind it.
const LONGEST: usize = DIGITS + 1 + 320 + 7;
const MARK: &[u8] = b"broken\n";
/// Counters of such files are smaller: what isn't is something else.
const LARGEST: u64 = (1 << 53) - (1 << 12);

/// The counter; `None` for what has none. Zeros behind it are room for a text of this format that was never written.
pub(super) fn counter_of(page: &[u8]) -> Option<u64> {
    let filled = page.iter().rposition(|byte| *byte != 0)? + 1;
    let written = &page[..filled];
    if is_mark(written) {
        return Some(0);
    }
    let (digits, rest) = written.split_at_checked(DIGITS)?;
    if filled > LONGEST || !digits.iter().all(u8::is_ascii_digit) || !is_record(rest) {
        return None;
    }
    let counter = str::from_utf8(digits).ok()?.parse().ok();
    counter.filter(|counter| *counter < LARGEST)
}

/// Broken before its first holder had written anything.
fn is_mark(written: &[u8]) -> bool {
    let zeros = written.strip_suffix(MARK);
    zeros.is_some_and(|zeros| zeros.len() == LONGEST - MARK.len() && zeros.iter().all(|b| *b == 0))
}

/// A newline, and a text whose end a crash may have cut off, or zeros before a mark.
fn is_record(rest: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte == b'\n' || *byte == 0 || !byte.is_ascii_control();
    let begins = [&b"held "[..], b"unfinished ", b" ", b"broken\n", b"\0"];
    match rest.split_first() {
        Some((b'\n', record)) => {
            let begins = begins.iter().any(|with| {
                let length = record.len().min(with.len());
                record[..length] == with[..length]
            });
            let is_time = record.first().is_some_and(u8::is_ascii_digit);
            (begins || is_time) && record.iter().all(is_text)
        }
        _ => false,
    }
}
