//! The file of a delay queue.
#![no_main]

use std::os::unix::fs::FileExt;

use crosslock::fuzzing::queue_file;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: std::fs::File = tempfile::tempfile().expect("a file");
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with(|file| {
        file.set_len(0).expect("it is ours");
        file.write_all_at(bytes, 0).expect("there is room");
        queue_file(file);
    });
});
