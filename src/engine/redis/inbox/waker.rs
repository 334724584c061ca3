//! Wakes the thread that reads a connection.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::engine::net::socket::wait_to_read;

/// Wakes the thread that waits for a connection to become readable.
///
/// Both `wake` and `clear` are called under the lock that guards `pending`. While it is set there is one byte in the
/// pipe, otherwise none, so that neither call blocks.
#[derive(Debug)]
pub(super) struct Waker {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = pipe()?;
        Ok(Waker { reader, writer })
    }

    pub(super) fn wake(&self, pending: &mut bool) {
        if !*pending {
            *pending = (&self.writer).write_all(&[0]).is_ok();
        }
    }

    pub(super) fn clear(&self, pending: &mut bool) {
        if *pending {
            *pending = (&self.reader).read_exact(&mut [0]).is_err();
        }
    }

    /// Blocks until `wake`, or until the connection is readable, at most for `timeout`.
    pub(super) fn wait(&self, connection: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
        wait_to_read([connection, self.reader.as_fd()], timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_wakes_are_cleared_together() {
        let (waker, (quiet, _writer), mut pending) =
            (Waker::new().unwrap(), pipe().unwrap(), false);
        let long = Duration::from_secs(600);
        for _ in 0..3 {
            (0..100_000).for_each(|_| waker.wake(&mut pending));
            waker.wait(quiet.as_fd(), long).unwrap();
            (0..2).for_each(|_| waker.clear(&mut pending));
            assert!(!pending);
            waker.wait(quiet.as_fd(), Duration::from_millis(1)).unwrap();
        }
    }
}
