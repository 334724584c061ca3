//! The second name of a file that is about to be replaced: under it its counter is found when a break crashes halfway.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::content::{Content, Record, read_content};
use super::create::{open_to_read, unless_missing};

fn aside(path: &Path) -> PathBuf {
    path.with_extension("broken")
}

/// Gives the file at `path` its second name.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    remove_aside(path)?;
    // Some file systems have no links. There, a break that crashes halfway leaves the counter as it was before.
    let _ = fs::hard_link(path, aside(path));
    Ok(())
}

pub(super) fn remove_aside(path: &Path) -> io::Result<()> {
    unless_missing(fs::remove_file(aside(path)))
}

/// The counter of the file at `path`: of one that is unfinished, that of the file which was set aside for it.
pub(super) fn counter_after(path: &Path, content: &Content) -> u64 {
    let old = || read_content(&open_to_read(&aside(path)).ok()??.0).ok()?;
    match content.record {
        Record::Unfinished => old().map_or(content.counter, |old| old.counter),
        _ => content.counter,
    }
}
