//! Wakes who reads a connection, whatever it says.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::engine::net::socket::wait_to_read;

/// Wakes who reads a connection. It is rung, and answered, under the lock of what there is to be seen: in the pipe there
/// is a byte while `rung`, never more, so that neither call blocks.
#[derive(Debug)]
pub(super) struct Bell {
    ear: PipeReader,
    hand: PipeWriter,
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let (ear, hand) = pipe()?;
        Ok(Bell { ear, hand })
    }

    pub(super) fn ring(&self, rung: &mut bool) {
        if !*rung {
            *rung = (&self.hand).write_all(&[0]).is_ok();
        }
    }

    pub(super) fn answer(&self, rung: &mut bool) {
        if *rung {
            *rung = (&self.ear).read_exact(&mut [0]).is_err();
        }
    }

    /// Blocks until it is rung, or there is something to read, at most for `timeout`.
    pub(super) fn wait(&self, connection: BorrowedFd<'_>, timeout: Duration) -> io::Result<()> {
        wait_to_read([connection, self.ear.as_fd()], timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_answered_together() {
        let (bell, (quiet, _writer), mut rung) = (Bell::new().unwrap(), pipe().unwrap(), false);
        let long = Duration::from_secs(600);
        for _ in 0..3 {
            (0..100_000).for_each(|_| bell.ring(&mut rung));
            bell.wait(quiet.as_fd(), long).unwrap();
            (0..2).for_each(|_| bell.answer(&mut rung));
            assert!(!rung);
            bell.wait(quiet.as_fd(), Duration::from_millis(1)).unwrap();
        }
    }
}
