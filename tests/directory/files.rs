//! Files of locks, as `docs/internals/file.md` has them. The helper has these, too.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Where the lock `name` is, for a name without odd characters.
pub(crate) fn file_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("crosslock+{name}.lock"))
}

/// How long a name has to be idle until its file may go.
pub(crate) const IDLE: u64 = 2 * 86_400 * 1_000_000;

/// As one that was used last at that time, in microseconds since 1970.
pub(crate) fn use_last_at(file: &Path, micros: u64, more: &str) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let content = file_that_says(&boot[..8], &format!("counter {micros}\n{more}"));
    let opened = fs::OpenOptions::new().write(true).open(file).unwrap();
    opened.write_all_at(content.as_bytes(), 0).unwrap();
}

/// How long its first line is.
pub(crate) const HEAD: usize = 64;

/// A file that says this.
pub(crate) fn file_that_says(boot: &str, text: &str) -> String {
    let (len, sum) = (text.len(), sum(text.as_bytes()));
    let head = format!("crosslock 2 {boot} at={HEAD} len={len} sum={sum:08x}");
    format!("{head:63}\n{text}")
}

fn sum(text: &[u8]) -> u32 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let words = text.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    let sum = words.fold(!(text.len() as u64), |sum, word| {
        (sum.rotate_left(5) ^ word).wrapping_mul(FACTOR)
    });
    ((sum ^ sum >> 32).wrapping_mul(FACTOR) >> 32) as u32
}

/// `<name>=<value>` in a line.
pub(crate) fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
    fields.find_map(|(found, value)| (found == name).then_some(value))
}

/// What stands in the first line.
pub(crate) fn head_of(file: &Path) -> (String, usize, usize) {
    let content = fs::read(file).unwrap();
    let head = str::from_utf8(&content[..HEAD]).unwrap();
    assert!(
        head.starts_with("crosslock 2 ") && head.ends_with(" \n"),
        "{head:?}"
    );
    let boot = head.split(' ').nth(2).unwrap().to_owned();
    let number = |name| field(head, name).unwrap().parse().unwrap();
    (boot, number("at"), number("len"))
}

pub(crate) fn text_of(file: &Path) -> String {
    let (_, at, len) = head_of(file);
    let content = fs::read(file).unwrap();
    String::from_utf8(content[at..at + len].to_vec()).unwrap()
}
