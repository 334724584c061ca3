//! How long a file may be that this process writes. Behind that the kernel writes a part of what it was given, and ends the process at the
//! next write.
//!
//! It uses nothing.

use std::io::{self, ErrorKind};

use rustix::process::{Resource, getrlimit};

/// An error if this process may not write up to there: nothing of it must be written then.
pub(super) fn check(end: usize) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if most < end as u64 => {
            let text = format!("this process may write {most} bytes to a file, which needs {end}");
            Err(io::Error::new(ErrorKind::QuotaExceeded, text))
        }
        _ => Ok(()),
    }
}
