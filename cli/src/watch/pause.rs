//! Pauses that signals, and the end of whoever reads, cut short.

use std::io::{self, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::status::{FAILED, Failure, OK, Status};

/// A signal that comes just before a pause is seen this much later.
const LONGEST: Duration = Duration::from_millis(100);

/// Hears of signals that end the program.
pub(super) struct Signals(Arc<AtomicUsize>);

impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        let heard = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, heard.clone(), number)
                .map_err(|e| Failure::new(FAILED, format!("signals can't be heard: {e}")))?;
        }
        Ok(Signals(heard))
    }

    /// With which status to end, once it is time to. An interrupt is how one stops watching.
    fn status(&self) -> Option<Status> {
        const INTERRUPT: usize = SIGINT as usize;
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            INTERRUPT => Some(OK),
            number => Some(Status(128 + u8::try_from(number).unwrap_or(0))),
        }
    }

    /// Pauses until then, or until it is time to end.
    pub(super) fn pause_until(&self, then: Instant) -> Option<Status> {
        loop {
            if let Some(status) = self.status() {
                return Some(status);
            }
            let left = then.saturating_duration_since(Instant::now());
            if nobody_reads_within(left.min(LONGEST)) {
                return Some(OK);
            }
            if left <= LONGEST && self.status().is_none() {
                return None;
            }
        }
    }
}

/// Whether the reader of standard output goes, or has gone, within that time. A signal ends it earlier.
fn nobody_reads_within(time: Duration) -> bool {
    let out = stdout();
    let mut events = [PollFd::new(&out, PollFlags::empty())];
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(&mut events, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => false,
        Ok(_) => true,
        Err(e) => {
            // What can't be asked is as if nothing had happened, but must not become a loop without pauses.
            log::debug!("poll: {}", io::Error::from(e));
            std::thread::sleep(time);
            false
        }
    }
}
