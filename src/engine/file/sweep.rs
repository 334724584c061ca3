//! What goes whenever somebody opens the directory: what ended processes have left, and some files of names that nobody has used
//! for long.
//!
//! What always holds here: a file is removed while it is locked. Whoever has it
//! open finds at the next change that it isn't at its path any more, and opens another. Its counter is a day behind the host's clock,
//! from which the next token comes.

use std::ffi::{OsStr, OsString};
use std::io;

use rustix::fs::{FileType, OFlags};

use super::create::open_there;
use super::dir::{Dir, Identity};
use super::page::{self, BootId};
use super::presence;
use super::text::written_of;
use crate::base::sys;
use crate::base::token::host_micros;
use crate::engine::rules::NameState;

/// So many are looked at each time.
const LOOKS: usize = 64;

/// A name is idle when it wasn't taken for so long. A clock that is set back by less gives no token again.
const IDLE_MICROS: u64 = 86_400 * 1_000_000;

/// Removes what ended processes have left, and some of what nobody has used for long.
pub(super) fn sweep(dir: &Dir) -> io::Result<()> {
    let entries = dir.entries()?;
    presence::sweep(dir, &entries)?;
    remove_some(dir, &entries)
}

/// Begins anywhere, so that those who open the directory one after the other get to see them all.
fn remove_some(dir: &Dir, entries: &[(OsString, FileType)]) -> io::Result<()> {
    let is_name = |name: &OsStr| name.as_encoded_bytes().ends_with(b".lock");
    let names = entries
        .iter()
        .filter(|(name, kind)| kind.is_file() && is_name(name));
    let names: Vec<_> = names.map(|(name, _)| name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let first = sys::random_below(names.len());
    for name in names
        .iter()
        .cycle()
        .skip(first)
        .take(LOOKS.min(names.len()))
    {
        remove_idle(dir, name)?;
    }
    Ok(())
}

fn remove_idle(dir: &Dir, name: &OsStr) -> io::Result<()> {
    // What can't be opened or locked at once isn't this one's to remove.
    let Ok(Some((file, found))) = open_there(dir, name, OFlags::RDWR) else {
        return Ok(());
    };
    if file.try_lock().is_err() {
        return Ok(());
    }
    if Identity::of(&found).is_in(dir, name.as_ref())? && is_idle(&file)? {
        // Where users may not remove each other's files, its owner does.
        let _ = dir.remove(name);
    }
    // A child that is being spawned has a copy of the descriptor for a moment.
    file.unlock()
}

fn is_idle(file: &std::fs::File) -> io::Result<bool> {
    let found = page::read(file, &BootId::current())?;
    let written = found.and_then(|(found, _)| written_of(found));
    let before = host_micros().saturating_sub(IDLE_MICROS);
    Ok(written.is_some_and(|written| {
        // One that was never used has no counter: another process may be about to use it.
        written.name == NameState::default() && (1..before).contains(&written.counter)
    }))
}
