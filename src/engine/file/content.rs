//! What a lock's file holds: a line with the counter of fencing tokens, and a record: who holds the lock, or until when it
//! is kept. Behind them stands whether the lock was broken while this was its file.
//!
//! The record says who has an odd counter. It is written together with the counter when the lock is taken, and may be there
//! still when the lock is free: an even counter, or a file that nobody has locked, has no holder.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::moment::{self, Moment};

/// Digits of a counter in its file, with leading zeros: each write replaces all of the one before.
const DIGITS: usize = 20;
const COUNTER: usize = DIGITS + 1;

/// A record, filled up with spaces: each replaces all of the one before. Version 0.1 knows none; the ones before this
/// format had but that of a lock that is kept, not filled up.
const RECORD: usize = 320;
const WHOLE: usize = COUNTER + RECORD;

const HELD: &str = "held ";
const UNFINISHED: &str = "unfinished ";
const BROKEN: &[u8] = b"broken\n";

/// What a lock's file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) counter: u64,
    pub(super) record: Record,
}

/// What it says besides the counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Record {
    /// Nothing, or a record that a full disk or the loss of power cut short.
    #[default]
    None,
    Held(Held),
    /// The lock was released early, and stays taken until then.
    Kept(Moment),
    /// The lock was broken by a process that died before it had written the counter: see `breaking`.
    Unfinished,
}

/// Who took a lock, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) since: Moment,
    /// The public part of its owner.
    pub(super) holder: String,
}

impl Content {
    /// Who has the lock, if somebody has it.
    pub(super) fn held(&self) -> Option<&Held> {
        match &self.record {
            Record::Held(held) if self.counter % 2 == 1 => Some(held),
            _ => None,
        }
    }

    /// For how much longer the lock stays taken, if nobody has it.
    pub(super) fn kept(&self) -> Duration {
        match &self.record {
            Record::Kept(until) => until.remaining(),
            _ => Duration::ZERO,
        }
    }
}

/// The counter alone: of a record that is there only the counter says whether it holds.
pub(super) fn write_counter(file: &File, counter: u64) -> io::Result<()> {
    file.write_all_at(format!("{counter:0DIGITS$}\n").as_bytes(), 0)
}

/// All of it, in one write.
pub(super) fn write_content(file: &File, counter: u64, record: &Record) -> io::Result<()> {
    file.write_all_at(&text_of(counter, record)?, 0)
}

fn text_of(counter: u64, record: &Record) -> io::Result<[u8; WHOLE]> {
    let mut text = [b' '; WHOLE];
    let (mut line, mut rest) = text.split_at_mut(COUNTER);
    write!(line, "{counter:0DIGITS$}")?;
    match record {
        Record::None => {}
        Record::Held(held) => held.write(rest)?,
        Record::Kept(until) => until.write(&mut rest)?,
        Record::Unfinished => rest.write_all(UNFINISHED.as_bytes())?,
    }
    (text[DIGITS], text[WHOLE - 1]) = (b'\n', b'\n');
    Ok(text)
}

/// Tells whoever has the file open that its lock was broken.
pub(super) fn mark_broken(file: &File) -> io::Result<()> {
    file.write_all_at(BROKEN, WHOLE as u64)
}

/// Takes that back: nothing else stands there.
pub(super) fn unmark_broken(file: &File) -> io::Result<()> {
    file.set_len(WHOLE as u64)
}

pub(super) fn is_marked_broken(file: &File) -> io::Result<bool> {
    let mut mark = [0; BROKEN.len()];
    let read = read_up_to(file, &mut mark, WHOLE as u64)?;
    Ok(mark[..read] == *BROKEN)
}

/// `None` when the file holds something else.
pub(super) fn read_content(file: &File) -> io::Result<Option<Content>> {
    let mut text = [0; WHOLE + BROKEN.len() + 1];
    let filled = read_up_to(file, &mut text, 0)?;
    Ok(parse(&text[..filled]))
}

/// Fewer bytes than there is room for are the file's last.
fn read_up_to(file: &File, text: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(text, at) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// `None` for what is none. An empty file is one that nobody has used yet.
fn parse(text: &[u8]) -> Option<Content> {
    if text.is_empty() {
        return Some(Content::default());
    }
    let (counter, rest) = text.split_at_checked(COUNTER)?;
    let (record, mark) = rest.split_at(rest.len().min(RECORD));
    if !BROKEN.starts_with(mark) {
        return None;
    }
    if counter.iter().chain(record).all(|b| *b == 0) {
        // Marked before its first holder had written anything.
        return Some(Content::default());
    }
    Some(Content {
        counter: parse_counter(counter)?,
        record: Record::parse(record)?,
    })
}

impl Record {
    /// `None` for what is none.
    fn parse(record: &[u8]) -> Option<Self> {
        // What a write behind it has skipped reads as zeros.
        if is_torn(record) || record.iter().all(|b| *b == 0) {
            return Some(Record::None);
        }
        let line = str::from_utf8(record.strip_suffix(b"\n")?).ok()?;
        if let Some(held) = line.strip_prefix(HELD) {
            return Held::parse(held).map(Record::Held);
        }
        match line.trim_end_matches(' ') {
            "" if record.len() == RECORD => Some(Record::None),
            text if text == UNFINISHED.trim_end() => Some(Record::Unfinished),
            text if text.len() == line.len() || record.len() == RECORD => {
                Moment::parse(text).map(Record::Kept)
            }
            _ => None,
        }
    }
}

/// Whether it is the beginning of a record, which a full disk or the loss of power cut short.
fn is_torn(record: &[u8]) -> bool {
    let is_whole = record.ends_with(b"\n") || record.len() >= RECORD;
    let begins = |with: &[u8]| {
        let length = record.len().min(with.len());
        record[..length] == with[..length]
    };
    let time = &record[..record.len().min(DIGITS)];
    let filling = record.get(moment::LONGEST..).unwrap_or_default();
    let is_kept = time.iter().all(u8::is_ascii_digit) && filling.iter().all(|b| *b == b' ');
    let is_begun = [HELD, UNFINISHED, " "]
        .iter()
        .any(|with| begins(with.as_bytes()));
    !is_whole && (is_kept || is_begun)
}

impl Held {
    /// The end of the line is the holder's, who may have a label with spaces: it is filled up at the beginning.
    fn write(&self, line: &mut [u8]) -> io::Result<()> {
        const LONGEST: usize = RECORD - HELD.len() - moment::LONGEST - 2;
        let most = self.holder.len().min(LONGEST);
        let cut = (0..=most)
            .rev()
            .find(|at| self.holder.is_char_boundary(*at));
        let holder = &self.holder[..cut.unwrap_or_default()];
        let start = RECORD - 2 - holder.len() - moment::LONGEST;
        line[..HELD.len()].copy_from_slice(HELD.as_bytes());
        self.since.write(&mut &mut line[start..])?;
        let end = &mut line[start + moment::LONGEST + 1..RECORD - 1];
        for (to, from) in end.iter_mut().zip(holder.bytes()) {
            // A host may have any name.
            *to = if from.is_ascii_control() { b'?' } else { from };
        }
        Ok(())
    }

    fn parse(line: &str) -> Option<Self> {
        let line = line.trim_start_matches(' ');
        let (since, holder) = line.split_at_checked(moment::LONGEST)?;
        Some(Held {
            since: Moment::parse(since.trim_end_matches(' '))?,
            holder: holder.strip_prefix(' ')?.to_owned(),
        })
    }
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
    use crate::base::random::{Random, for_any};

    fn counted(counter: u64) -> Content {
        let record = Record::None;
        Content { counter, record }
    }

    fn any_record(random: &mut Random) -> Record {
        let at = Moment::in_future(Duration::from_millis(random.u64(..u64::MAX / 2)));
        match random.u8(0..4) {
            0 => Record::None,
            1 => Record::Kept(at),
            2 => Record::Unfinished,
            _ => Record::Held(Held {
                since: at,
                holder: random
                    .text(0..=60)
                    .replace(|c: char| c.is_ascii_control(), "?"),
            }),
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
    fn content_is_read_as_written_over_any_other() {
        let file = tempfile::tempfile().unwrap();
        for_any(|random| {
            let (counter, record) = (random.u64(..1 << 52), any_record(random));
            write_content(&file, counter, &record).unwrap();
            let found = read_content(&file).unwrap();
            let record = match random.bool() {
                true => record,
                false => {
                    write_counter(&file, counter).unwrap();
                    found.clone().unwrap().record
                }
            };
            assert_eq!(found, Some(Content { counter, record }));
        });
    }

    #[test]
    fn broken_file_says_so_whatever_is_written_later() {
        let file = tempfile::tempfile().unwrap();
        mark_broken(&file).unwrap();
        assert_eq!(read_content(&file).unwrap(), Some(Content::default()));
        unmark_broken(&file).unwrap();
        assert!(!is_marked_broken(&file).unwrap());
        write_counter(&file, 1).unwrap();
        assert!(!is_marked_broken(&file).unwrap());
        mark_broken(&file).unwrap();
        assert_eq!(read_content(&file).unwrap(), Some(counted(1)));
        write_content(&file, 2, &Record::Unfinished).unwrap();
        write_counter(&file, 3).unwrap();
        assert!(is_marked_broken(&file).unwrap());
        let found = read_content(&file).unwrap().unwrap();
        assert_eq!((found.counter, found.record), (3, Record::Unfinished));
    }

    #[test]
    fn torn_record_says_nothing() {
        for_any(|random| {
            let text = text_of(1, &any_record(random)).unwrap();
            let length = random.usize(COUNTER..WHOLE);
            assert_eq!(parse(&text[..length]), Some(counted(1)), "{length}");
        });
    }

    #[test]
    fn records_of_earlier_versions_are_understood() {
        let until = Moment::in_future(Duration::ZERO);
        let mut text = b"00000000000000000001\n".to_vec();
        assert_eq!(parse(&text), Some(counted(1)));
        until.write(&mut text).unwrap();
        text.push(b'\n');
        let kept = Content {
            counter: 1,
            record: Record::Kept(until),
        };
        assert_eq!(parse(&text), Some(kept));
    }

    #[test]
    fn long_holder_is_cut_short() {
        let since = Moment::now();
        let holder = "\u{fc}".repeat(RECORD);
        let text = text_of(
            1,
            &Record::Held(Held {
                since,
                holder: holder.clone(),
            }),
        );
        match parse(&text.unwrap()).unwrap().record {
            Record::Held(held) => assert!(holder.starts_with(&held.holder)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn other_second_line_is_no_content() {
        let mut kept = Vec::new();
        Moment::now().write(&mut kept).unwrap();
        let kept = String::from_utf8(kept).unwrap() + "\n";
        let whole = String::from_utf8(text_of(1, &Record::None).unwrap().into()).unwrap();
        let line = "00000000000000000001\n";
        for rest in [
            "more",
            "more\n",
            "\n",
            "held \n",
            &kept[1..],
            &(kept.clone() + "x"),
            &(whole[COUNTER..].to_owned() + "x"),
        ] {
            let text = line.to_owned() + rest;
            assert_eq!(parse(text.as_bytes()), None, "{rest:?}");
        }
    }
}
