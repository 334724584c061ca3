//! Where the kernel doesn't tell of what happens to files.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::base::clock::Deadline;

/// There is none.
#[derive(Debug)]
pub(in super::super) struct Watch(Infallible);

impl Watch {
    pub(super) fn new() -> Option<Self> {
        None
    }

    pub(in super::super) fn point_at(&mut self, _path: &Path) -> io::Result<()> {
        match self.0 {}
    }

    pub(in super::super) fn sleep(&self, _duration: Duration, _until: &Deadline) {
        match self.0 {}
    }

    pub(super) fn clear(&mut self) {
        match self.0 {}
    }
}
