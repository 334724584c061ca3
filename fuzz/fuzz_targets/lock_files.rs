//! The file of a lock, and the text in it.
#![no_main]

use std::os::unix::fs::FileExt;

use crosslock::fuzzing::{lock_file, lock_text};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: std::fs::File = tempfile::tempfile().expect("a file");
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with(|file| {
        file.set_len(0).expect("it is ours");
        file.write_all_at(bytes, 0).expect("there is room");
        lock_file(file);
    });
    if let Ok(text) = str::from_utf8(bytes) {
        lock_text(text);
    }
});
