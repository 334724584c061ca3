//! The values that locks of a directory protect: a file each, replaced as a whole.

use std::io::Write;

use super::create::{Draft, read_file, unless_missing};
use super::dir::last_of;
use super::files::Files;
use super::name::value_name;
use super::size_limit;
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
        let read = self.root.find().and_then(|root| match root {
            Some(root) => read_file(&root, &value_name(key)),
            None => Ok(None),
        });
        let read = read.map_err(|e| self.value_error(key, e))?;
        Ok(read.map(Into::into))
    }

    /// Stores it, on the disk. Only for who has the name's file locked: there is one draft for each.
    pub(super) fn store(&self, key: &Key, value: &[u8]) -> Result<()> {
        let stored = self.root.get().and_then(|root| {
            size_limit::check(value.len())?;
            let mut draft = Draft::of_value(&root, &value_name(key))?;
            draft.file.write_all(value)?;
            draft.file.sync_data()?;
            draft.publish()
        });
        stored.map_err(|e| self.value_error(key, e))
    }

    pub(super) fn remove(&self, key: &Key) -> Result<()> {
        let below = value_name(key);
        let removed = self.root.get().and_then(|root| {
            let parent = root.parent_of(&below)?;
            parent.map_or(Ok(()), |parent| parent.remove(last_of(&below)))
        });
        unless_missing(removed).map_err(|e| self.value_error(key, e))
    }
}
