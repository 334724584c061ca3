//! The values that locks of a directory protect: a file each, replaced as a whole.

use std::fs;
use std::io::Write;

use super::create::{draft_value, read_file, unless_missing};
use super::files::Files;
use crate::base::error::Result;
use crate::base::name::Key;
use crate::base::value::Stored;
use crate::engine::Request;

impl Files {
    /// What comes with the lock, if it was asked for.
    pub(super) fn value(&self, request: Request<'_>) -> Result<Option<Stored>> {
        if !request.claim.valued {
            return Ok(None);
        }
        self.load(request.key()).map(Some)
    }

    pub(super) fn load(&self, key: &Key) -> Result<Stored> {
        let read = read_file(&self.value_path(key));
        let read = read.map_err(|e| self.value_error(key, e))?;
        Ok(read.map(Into::into))
    }

    /// Stores it, on the disk. Only for who has the name's file locked: there is one draft for each.
    pub(super) fn store(&self, key: &Key, value: &[u8]) -> Result<()> {
        let stored = draft_value(&self.directory, &self.value_path(key)).and_then(|mut draft| {
            draft.file.write_all(value)?;
            draft.file.sync_data()?;
            draft.publish()
        });
        stored.map_err(|e| self.value_error(key, e))
    }

    pub(super) fn remove(&self, key: &Key) -> Result<()> {
        let removed = fs::remove_file(self.value_path(key));
        unless_missing(removed).map_err(|e| self.value_error(key, e))
    }
}
