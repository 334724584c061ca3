//! A file with any bytes.

use std::fs::File;
use std::os::unix::fs::FileExt;

thread_local! {
    static FILE: File = tempfile::tempfile().expect("a file");
}

pub(crate) fn with_file(bytes: &[u8], read: impl FnOnce(&File)) {
    FILE.with(|file| {
        file.set_len(0).expect("it is ours");
        file.write_all_at(bytes, 0).expect("there is room");
        read(file);
    });
}
