//! The file of a lock, and the text in it.
#![no_main]

mod file;

use crosslock::fuzzing::{lock_file, lock_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    file::with_file(bytes, lock_file);
    if let Ok(text) = str::from_utf8(bytes) {
        lock_text(text);
    }
});
