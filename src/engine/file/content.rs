//! What a lock's file holds: the counter of fencing tokens, and until when the lock is kept, if it was released early.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use super::kept::{self, KeptUntil};

/// Digits of a counter in its file, with leading zeros: each write replaces all of the one before.
const DIGITS: usize = 20;
const COUNTER: usize = DIGITS + 1;

/// What a lock's file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) counter: u64,
    /// In a line of its own, which the next holder removes. Version 0.1 has none.
    pub(super) kept: Option<KeptUntil>,
}

/// The counter of a lock whose file tells of nothing else.
pub(super) fn write_counter(file: &File, counter: u64) -> io::Result<()> {
    file.write_all_at(line_of(counter).as_bytes(), 0)
}

/// Both in one write.
pub(super) fn write_kept(file: &File, counter: u64, kept: &KeptUntil) -> io::Result<()> {
    let text = line_of(counter) + &kept.to_line();
    file.write_all_at(text.as_bytes(), 0)
}

/// Leaves the counter.
pub(super) fn remove_kept(file: &File) -> io::Result<()> {
    file.set_len(COUNTER as u64)
}

fn line_of(counter: u64) -> String {
    format!("{counter:0DIGITS$}\n")
}

/// `None` when the file holds something else.
pub(super) fn read_content(file: &File) -> io::Result<Option<Content>> {
    let mut text = [0; COUNTER + kept::LONGEST + 1];
    let mut filled = 0;
    loop {
        match file.read_at(&mut text[filled..], filled as u64) {
            Ok(0) => return Ok(parse(&text[..filled])),
            Ok(n) => filled += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// `None` for what is none. An empty file is one that nobody has used yet.
fn parse(text: &[u8]) -> Option<Content> {
    if text.is_empty() {
        return Some(Content::default());
    }
    let (counter, rest) = text.split_at_checked(COUNTER)?;
    let counter = parse_counter(counter)?;
    let kept = match rest {
        [] => None,
        line if is_torn(line) => None,
        line => Some(KeptUntil::from_line(line)?),
    };
    Some(Content { counter, kept })
}

/// Whether it is the beginning of a second line, which a full disk or the loss of power cut short.
fn is_torn(line: &[u8]) -> bool {
    let time = &line[..line.len().min(DIGITS)];
    let is_whole = line.ends_with(b"\n") || line.len() >= kept::LONGEST;
    !is_whole && time.iter().all(u8::is_ascii_digit)
}

fn parse_counter(line: &[u8]) -> Option<u64> {
    const LARGEST: u64 = (1 << 53) - (1 << 12);
    let digits = str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let digits = Some(digits).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok().filter(|counter| *counter < LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;
    use std::time::Duration;

    fn counted(counter: u64) -> Content {
        Content {
            counter,
            kept: None,
        }
    }

    #[test]
    fn any_content_is_a_counter_or_refused() {
        for_any(|random| {
            let content = match random.bool() {
                true => random.list(0..=29, |random| random.u8(..)),
                false => random.text_of("0123456789\n", 19..=23).into(),
            };
            if let Some(Content { counter, .. }) = parse(&content) {
                let text = format!("{counter:020}\n");
                assert!(content.is_empty() || content.starts_with(text.as_bytes()));
            }
        });
    }

    #[test]
    fn counter_is_read_as_written() {
        for_any(|random| {
            let (counter, keep) = (random.u64(..1 << 52), random.u64(..u64::MAX / 2));
            let file = tempfile::tempfile().unwrap();
            write_counter(&file, counter).unwrap();
            assert_eq!(read_content(&file).unwrap(), Some(counted(counter)));
            let kept = KeptUntil::since_now(Duration::from_millis(keep));
            write_kept(&file, counter + 1, &kept).unwrap();
            let both = Content {
                counter: counter + 1,
                kept: Some(kept),
            };
            assert_eq!(read_content(&file).unwrap(), Some(both));
            remove_kept(&file).unwrap();
            assert_eq!(read_content(&file).unwrap(), Some(counted(counter + 1)));
        });
    }

    #[test]
    fn torn_second_line_keeps_nothing() {
        let kept = KeptUntil::since_now(Duration::ZERO).to_line();
        for length in 1..kept.len() {
            let text = line_of(1) + &kept[..length];
            assert_eq!(parse(text.as_bytes()), Some(counted(1)), "{text:?}");
        }
    }

    #[test]
    fn other_second_line_is_no_content() {
        let file = tempfile::tempfile().unwrap();
        let kept = KeptUntil::since_now(Duration::ZERO).to_line();
        let line = "00000000000000000001\n";
        for rest in ["more", "more\n", "\n", &kept[1..], &(kept.clone() + "x")] {
            file.set_len(0).unwrap();
            file.write_all_at((line.to_owned() + rest).as_bytes(), 0)
                .unwrap();
            assert_eq!(read_content(&file).unwrap(), None, "{rest:?}");
        }
    }
}
