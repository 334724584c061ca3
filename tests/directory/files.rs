//! Files of locks, as `docs/file.md` has them. The helper has these, too.

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
    let text = format!("counter {micros}\n{more}");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let head = format!(
        "crosslock 2 {} at=64 len={} sum={:08x}",
        &boot[..8],
        text.len(),
        sum(text.as_bytes())
    );
    let opened = fs::OpenOptions::new().write(true).open(file).unwrap();
    opened
        .write_all_at(format!("{head:63}\n{text}").as_bytes(), 0)
        .unwrap();
}

/// As `docs/file.md` has it.
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
