//! An inbox in use: what its waiters and its thread share.

use std::io;
use std::sync::{Arc, OnceLock, Weak};

use super::state::State;
use super::waker::Waker;
use crate::base::cancel::{Cancel, Registration};
use crate::base::error::LostReason;
use crate::base::sys;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::engine::Revocations;
use crate::engine::redis::server::Server;

/// An inbox in use, which its waiters and its thread share.
pub(super) struct Listener {
    pub(super) server: Arc<Server>,
    pub(super) id: String,
    pub(super) state: Mutex<State>,
    /// Wakes the thread, when it doesn't read.
    pub(super) thread_wakes: Condvar,
    /// Wakes the reader of the connection.
    pub(super) waker: Waker,
    pub(super) closed: Cancel,
    revocations: Receiver,
    /// Closes this when another server takes the place of its own.
    retirement: OnceLock<Registration>,
}

/// Who is told of leases that were broken, if anybody is.
pub(super) type Receiver = Arc<OnceLock<Weak<dyn Revocations>>>;

impl Listener {
    pub(super) fn new(server: Arc<Server>, revocations: Receiver) -> io::Result<Self> {
        Ok(Listener {
            server,
            id: sys::random_uuid().simple().to_string(),
            state: Mutex::default(),
            thread_wakes: Condvar::new(),
            waker: Waker::new()?,
            closed: Cancel::default(),
            revocations,
            retirement: OnceLock::new(),
        })
    }

    /// Has it close when another server takes the place of its own.
    pub(super) fn end_with_server(self: &Arc<Self>) {
        let listener = Arc::downgrade(self);
        let close = move || {
            if let Some(listener) = listener.upgrade() {
                listener.close();
            }
        };
        let registration = self.server.retired().on_set(Arc::new(close));
        let _ = self.retirement.set(registration);
    }

    /// Tells of a lease that was broken. To be called without the state's lock.
    pub(super) fn tell_broken(&self, owner: &str, below: u64) {
        let receiver = self.revocations.get().and_then(Weak::upgrade);
        if let Some(receiver) = receiver {
            receiver.revoked(owner, below, LostReason::Broken);
        }
    }

    pub(super) fn close(&self) {
        self.closed.set();
        let state = self.state.lock();
        if let Some(closer) = &state.closer {
            closer.close();
        }
        self.thread_wakes.notify_one();
    }
}
