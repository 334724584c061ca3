//! An inbox in use: its thread makes the connection, reads it, and makes it again when it is lost.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::pubsub::{PubSub, Received};
use super::state::State;
use crate::base::sys::{self, net::Waker, time};
use crate::base::{Cancel, Deadline, LostReason, Waits, sys::sync::Mutex};
use crate::engine::Revocations;
use crate::engine::net::{CHANNEL_UNUSED, LASTING, RECONNECT};
use crate::engine::redis::{failure::Failure, server::Server};

/// An inbox in use, which its waiters and its thread share.
pub(super) struct Listener {
    pub(super) server: Arc<Server>,
    pub(super) id: String,
    pub(super) state: Mutex<State>,
    /// Makes the thread look at the state.
    pub(super) waker: Waker,
    pub(super) closed: Cancel,
    revocations: Receiver,
}

/// Who is told of leases that were broken, if anybody is.
pub(super) type Receiver = Arc<OnceLock<Weak<dyn Revocations>>>;

impl Listener {
    /// Fails if there are no file descriptors for it, or if its thread can't be started.
    pub(super) fn start(server: Arc<Server>, revocations: Receiver) -> io::Result<Arc<Self>> {
        // TLS and the user's logger are all that needs stack here.
        const STACK: usize = 512 * 1024;
        let listener = Arc::new(Listener::new(server, revocations)?);
        let its = listener.clone();
        sys::spawn_with_stack("crosslock-inbox", STACK, move || its.run_while_served())?;
        Ok(listener)
    }

    pub(super) fn new(server: Arc<Server>, revocations: Receiver) -> io::Result<Self> {
        Ok(Listener {
            server,
            id: sys::random_uuid().simple().to_string(),
            state: Mutex::default(),
            waker: Waker::new()?,
            closed: Cancel::default(),
            revocations,
        })
    }

    /// Runs until this is closed, which it is when another server takes the place of its own.
    fn run_while_served(self: Arc<Self>) {
        let listener = self.clone();
        let retired = self.server.retired();
        let _registration = retired.on_set(Arc::new(move || listener.close()));
        self.run();
    }

    pub(super) fn close(&self) {
        self.closed.set();
        self.waker.wake();
    }

    fn run(&self) {
        // The pauses of an outage, which was logged.
        let mut outage: Option<Waits> = None;
        while !self.closed.is_set() {
            let mut began = time::now();
            let mut serve = || {
                self.wait_for_channel()?;
                began = time::now();
                self.serve()
            };
            // What the thread calls may be the user's. A panic of it must not end the thread that waiters rely on.
            let served = catch_unwind(AssertUnwindSafe(&mut serve));
            let panicked = |_| Err(Failure::Closed("the reading thread panicked".into()));
            let served = served.unwrap_or_else(panicked);
            let was_subscribed = self.state.lock().disconnect();
            if served.is_ok() || was_subscribed && time::since(began) > LASTING {
                outage = None;
            }
            if let Err(failure) = served
                && !self.closed.is_set()
            {
                let was_logged = outage.is_some();
                let pause = outage.get_or_insert_with(|| RECONNECT.waits()).next();
                let log = || self.log(failure, was_logged);
                let _ = catch_unwind(AssertUnwindSafe(log));
                let until_closed = Deadline::NEVER.or(&self.closed);
                until_closed.sleep(pause.unwrap_or(RECONNECT.cap));
            }
        }
    }

    fn log(&self, failure: Failure, was_logged: bool) {
        let (endpoint, cause) = (&self.server.settings().shown, failure.cause());
        log::log!(
            level(was_logged),
            "can't receive notifications from {endpoint}, so waiters poll: {cause}"
        );
    }

    fn wait_for_channel(&self) -> Result<(), Failure> {
        while self.state.lock().is_empty() && !self.closed.is_set() {
            self.waker.wait(None, Duration::MAX)?;
        }
        Ok(())
    }

    /// Connects, and reads until there is no channel any more, or this is closed.
    fn serve(&self) -> Result<(), Failure> {
        let deadline = Deadline::NEVER.or(&self.closed);
        let connection = self.server.connect(&deadline)?;
        let mut pubsub = PubSub::new(connection, self.server.settings());
        let mut next_sweep = time::now() + CHANNEL_UNUSED;
        loop {
            self.receive_all(&mut pubsub)?;
            let now = time::now();
            let is_due = next_sweep <= now;
            if is_due {
                next_sweep = now + CHANNEL_UNUSED;
            }
            let changes = self.state.lock().changes(is_due);
            if pubsub.send(&changes, &deadline)? {
                // Of an encrypted connection something may have been read along with the write.
                continue;
            }
            if self.has_ended()? {
                return Ok(());
            }
            let until = next_sweep.min(pubsub.next_check());
            let timeout = until.saturating_duration_since(now);
            self.waker.wait(Some(pubsub.socket()), timeout)?;
        }
    }

    /// Whether nobody needs the connection any more.
    fn has_ended(&self) -> Result<bool, Failure> {
        let state = self.state.lock();
        if state.is_distrusted {
            return Err(Failure::Closed("it skipped a waiter".into()));
        }
        Ok(state.is_empty() || self.closed.is_set())
    }

    /// Delivers what has arrived.
    fn receive_all(&self, pubsub: &mut PubSub) -> Result<(), Failure> {
        let mut look_again = true;
        while let Some(received) = pubsub.receive(look_again)? {
            if self.closed.is_set() {
                // A server may send without end.
                return Ok(());
            }
            look_again = false;
            let waiter = self.state.lock().deliver(&received);
            waiter.iter().for_each(|bell| bell.ring());
            if let Received::Broken { owner, below } = &received {
                self.tell_broken(owner, *below);
            }
        }
        Ok(())
    }

    /// Tells of a lease that was broken. To be called without the state's lock.
    pub(super) fn tell_broken(&self, owner: &str, below: u64) {
        let receiver = self.revocations.get().and_then(Weak::upgrade);
        if let Some(receiver) = receiver {
            receiver.revoked(owner, below, LostReason::Broken);
        }
    }
}

/// At which level it is logged that grants aren't heard of: once until they are is enough.
pub(super) fn level(was_logged: bool) -> log::Level {
    if was_logged {
        log::Level::Debug
    } else {
        log::Level::Warn
    }
}
