//! The counter of fencing tokens, in the file of its name.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// Digits of a counter in its file, with leading zeros: each write replaces all of the one before.
const DIGITS: usize = 20;

pub(super) fn write_counter(file: &File, counter: u64) -> io::Result<()> {
    file.write_all_at(format!("{counter:0DIGITS$}\n").as_bytes(), 0)
}

/// `None` when the file holds something else.
pub(super) fn read_counter(file: &File) -> io::Result<Option<u64>> {
    let mut text = [0; DIGITS + 2];
    let mut filled = 0;
    loop {
        match file.read_at(&mut text[filled..], filled as u64) {
            Ok(0) => return Ok(parse_counter(&text[..filled])),
            Ok(n) => filled += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// `None` for what isn't a counter. An empty file is one that nobody has used yet.
fn parse_counter(text: &[u8]) -> Option<u64> {
    const LARGEST: u64 = (1 << 53) - (1 << 12);
    if text.is_empty() {
        return Some(0);
    }
    let digits = text
        .strip_suffix(b"\n")
        .filter(|digits| digits.len() == DIGITS)?;
    let digits = str::from_utf8(digits)
        .ok()
        .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok().filter(|counter| *counter < LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_content_is_a_counter_or_refused(content in proptest::collection::vec(any::<u8>(), 0..30)) {
            if let Some(counter) = parse_counter(&content) {
                let text = format!("{counter:020}\n");
                prop_assert!(content.is_empty() || content == text.as_bytes());
            }
        }

        #[test]
        fn counter_is_read_as_written(counter in 0u64..(1 << 52)) {
            let file = tempfile::tempfile().unwrap();
            write_counter(&file, counter).unwrap();
            prop_assert_eq!(read_counter(&file).unwrap(), Some(counter));
        }
    }

    #[test]
    fn long_file_is_no_counter() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at("00000000000000000001\nmore".as_bytes(), 0)
            .unwrap();
        assert_eq!(read_counter(&file).unwrap(), None);
    }
}
