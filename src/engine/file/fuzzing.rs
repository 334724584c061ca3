//! What fuzz targets call here.

use std::fs::File;

use super::journal::Journal;
use super::page::{self, BootId};
use super::text::{parse, text_of};

/// Reads a lock's file.
pub(crate) fn lock_file(file: &File) {
    let _ = page::read(file, &BootId::current());
    let _ = page::read(file, &BootId::UNKNOWN);
    let _ = page::Peek::new().changed(file);
}

/// Reads the file of a delay queue.
pub(crate) fn queue_file(file: &File) {
    let _ = Journal::default().read(file);
}

/// Reads the text of a lock's file. What is written again has to say the same.
pub(crate) fn text(text: &str) {
    if let Some(written) = parse(text) {
        let again = parse(&text_of(&written)).expect("what is written can be read");
        assert_eq!(written.counter, again.counter);
        assert_eq!(written.name.entries.len(), again.name.entries.len());
    }
}
